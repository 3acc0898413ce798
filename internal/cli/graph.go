package cli

import (
	"fmt"
	"io"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/graph"
	"github.com/spf13/cobra"
)

func (a *app) graph() *cobra.Command {
	var format, network string
	c := &cobra.Command{
		Use:   "graph",
		Short: "draw the attachments, for Graphviz or Mermaid",
		Long: `Write a drawing of the recorded attachments: pods (boxes), links (ovals), routing tables (drums), and the
rules and routes between them. Dashed is what is shared, and what had its DEL.

  backstopctl graph | dot -Tsvg >node.svg
  backstopctl graph --format mermaid

` + exitHelpLines,
		Args: exact(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			draw, ok := map[string]func(*graph.Graph, io.Writer) error{"dot": (*graph.Graph).Dot, "mermaid": (*graph.Graph).Mermaid}[format]
			if !ok {
				return fmt.Errorf("%w: --format %q: want dot or mermaid", errUsage, format)
			}
			j, err := a.openJournal()
			if err != nil {
				return err
			}
			records, err := a.records(cmd.Context(), j, func(r *attachment.Record) bool { return network == "" || r.Network == network })
			if err != nil {
				return err
			}
			return draw(graph.Of(records), a.stdout)
		},
	}
	c.Flags().StringVar(&format, "format", "dot", "dot (Graphviz) or mermaid")
	c.Flags().StringVar(&network, "network", "", "only this network's attachments")
	return c
}
