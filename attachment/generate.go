package attachment

// The codec of Record and Claim is generated: looking at their types by reflection took a tenth of a pod's ADD. The
// easyjson package itself brings net/http, so its import, which nothing uses, is taken out.
//
//go:generate go run github.com/mailru/easyjson/easyjson@v0.9.1 -no_std_marshalers -output_filename codec.go .
//go:generate sed -i "/easyjson \"github.com.mailru.easyjson\"/d; /_ easyjson.Marshaler/d" codec.go
