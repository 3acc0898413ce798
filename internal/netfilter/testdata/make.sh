# What plugins make for one container: make.sh NETWORK CONTAINERID IFNAME ADDRESS ADDRESS6 PORT, in the order and with the
# words of containernetworking/plugins v1.10.0 and egress-cni v1.23.2. The shared parts are made if they are missing.
set -e
net=$1 id=$2 if=$3 ip=$4 ip6=$5 port=$6
h() { printf %s "$1" | sha512sum | cut -c1-"$2"; }
ensure() { "$1" -t nat -n -L "$2" >/dev/null 2>&1 || "$1" -t nat -N "$2"; }
once() { p=$1; shift; "$p" -t nat -C "$@" 2>/dev/null || "$p" -t nat -A "$@"; }
name="name: \"$net\" id: \"$id\"" dnat="dnat name: \"$net\" id: \"$id\""

for f in "iptables $ip ${ip%.*}.0/24 224.0.0.0/4 E4" "ip6tables $ip6 ${ip6%::*}::/64 ff00::/8 E6"; do
	set -- $f
	# ipMasq
	c=CNI-$(h "$net$id" 24)
	ensure $1 $c
	once $1 $c -d $3 -j ACCEPT -m comment --comment "$name"
	once $1 $c ! -d $4 -j MASQUERADE -m comment --comment "$name"
	once $1 POSTROUTING -s $2 -j $c -m comment --comment "$name"
	# portmap
	ensure $1 CNI-HOSTPORT-SETMARK
	once $1 CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000
	ensure $1 CNI-HOSTPORT-DNAT
	once $1 PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
	c=CNI-DN-$(h "$net$id" 21)
	ensure $1 $c
	once $1 $c -p tcp --dport $port -s $3 -j CNI-HOSTPORT-SETMARK
	[ $1 = ip6tables ] || once $1 $c -p tcp --dport $port -s 127.0.0.1 -j CNI-HOSTPORT-SETMARK
	to=$2:80
	[ $1 = iptables ] || to="[$2]:80"
	once $1 $c -p tcp --dport $port -j DNAT --to-destination $to
	once $1 CNI-HOSTPORT-DNAT -m comment --comment "$dnat" -m multiport -p tcp --destination-ports $port -j $c
	# egress-cni
	c=CNI-$5-$(h "$net$id" 21)
	ensure $1 $c
	once $1 $c -d $4 -j ACCEPT -m comment --comment "$name"
	src=169.254.172.$port
	to=192.0.2.1
	[ $1 = iptables ] || { src=fd00:ac:$port::; to=2001:db8::1; }
	once $1 $c -j SNAT --to-source $to -m comment --comment "$name" --random-fully
	once $1 POSTROUTING -s $src -j $c -m comment --comment "$name"
done

cmt=$(printf '%s-%s, net: %s, if: %s, id: %s' "$(h "$net" 16)" "$(h "$if:$id" 16)" "$net" "$if" "$id" | cut -c1-128)
nft -f - <<N
add table inet cni_plugins_masquerade
add chain inet cni_plugins_masquerade masq_checks
add chain inet cni_plugins_masquerade postrouting { type nat hook postrouting priority 100 ; }
flush chain inet cni_plugins_masquerade postrouting
add rule inet cni_plugins_masquerade postrouting ip daddr == 224.0.0.0/4 return
add rule inet cni_plugins_masquerade postrouting goto masq_checks
add rule inet cni_plugins_masquerade masq_checks ip saddr == $ip ip daddr != ${ip%.*}.0/24 masquerade comment "$cmt"
add rule inet cni_plugins_masquerade masq_checks ip6 saddr == $ip6 ip6 daddr != ${ip6%::*}::/64 masquerade comment "$cmt"
N
for f in "ip $ip $ip:80" "ip6 $ip6 [$ip6]:80"; do
	set -- $f
	nft -f - <<N
add table $1 cni_hostport
add chain $1 cni_hostport hostports
add chain $1 cni_hostport masquerading { type nat hook postrouting priority 100 ; }
add rule $1 cni_hostport hostports tcp dport $port dnat to $3 comment "$id"
add rule $1 cni_hostport masquerading $1 saddr $2 $1 daddr $2 masquerade comment "$id"
N
done

c=cni-br-iface-$id-$if
nft -f - <<N
add table bridge nat
add chain bridge nat PREROUTING { type filter hook prerouting priority -300 ; policy accept ; }
add chain bridge nat $c
add chain bridge nat $c-mac
add rule bridge nat PREROUTING iifname "veth$port" jump $c comment "macspoofchk-$id-$if"
add rule bridge nat $c jump $c-mac comment "macspoofchk-$id-$if"
add rule bridge nat $c-mac ether saddr 02:00:00:00:00:01 return comment "macspoofchk-$id-$if"
add rule bridge nat $c-mac drop comment "macspoofchk-$id-$if"
N
