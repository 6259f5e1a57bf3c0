// Package doctor has the command that examines Plimsoll in a cluster.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/doctor"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

// options are the flags of plimsoll doctor.
type options struct {
	cluster    base.Cluster
	output     base.Output
	watch      base.Watch
	autoscaler string
}

// NewCommand returns the command plimsoll doctor.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check Plimsoll in a cluster, and show how to fix problems",
		Long: `Check Plimsoll in a cluster. Problems are printed first, then warnings, each with its
remedy, and then one line with the checks that found nothing. A warning can be intended, a
problem must be fixed. The cluster is not changed.

The checks:
  api server   the scheduler supports the version of the API server
  nodes        how many there are, and which are not ready or have swap
  components   all replicas of the Deployments that the chart installs are ready (label
               app.kubernetes.io/part-of: plimsoll)
  leaders      each of their leases has a holder that renews it
  rights       the service account of each component has the permissions that it needs
  definitions  the required CRDs are installed, that of ResourceSlack in this version
  schedulers   pods that no scheduler has processed for over a minute, for example because
               spec.schedulerName names a scheduler that does not run
  load         each load-watcher, called through the API server, has recent load of all nodes;
               nodes whose CPU load is 0 or jumps
  slack        policies that are not ready, or have no status
  autoscaler   policies with CapacityBuffers that an autoscaler refuses, limits, or has not reported
               on for over two minutes; flags and permissions of Cluster Autoscaler and Karpenter,
               if they run as Deployments; more buffers than Cluster Autoscaler can update in each
               loop
  placements   placements that are misconfigured, and clusters that report no resources

The command requires the verbs get and list for nodes, pods, services, Deployments, leases,
CRDs, ResourceSlacks, CapacityBuffers, Placements and ManagedClusters, get for services/proxy
of the load-watcher, and create for subjectaccessreviews.
A check without its permission is not made, and says so. Components outside the cluster are
not found, nor autoscalers that a cloud provider operates, nor differences between clocks.

Exit codes: 0 without problems, there can be warnings; 1 if there is a problem, the API
server cannot be reached, or none of nodes, components and definitions can be read; 2 for
invalid flags.`,
		Example: `  plimsoll doctor

  # Check every 30 seconds until interrupted, for example during an upgrade.
  plimsoll doctor --watch

  # Print a table for an issue or a pull request.
  plimsoll doctor -o markdown

  # Print findings other than "ok" as JSON.
  plimsoll doctor -o json | jq '.[] | select(.level != "ok")'`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), base.Warnings(cmd.ErrOrStderr()))
		},
	}
	o.cluster.AddFlags(cmd, "cluster", time.Minute)
	o.output.AddFlag(cmd, base.FormatMarkdown)
	o.watch.AddFlags(cmd, 30*time.Second)
	cmd.Flags().StringVar(&o.autoscaler, "autoscaler", "", "Deployment of the autoscaler, as NAMESPACE/NAME, such as "+
		"kube-system/cluster-autoscaler; if it is not set, Deployments with an image of Cluster Autoscaler or Karpenter")
	return cmd
}

func (o *options) run(ctx context.Context, out io.Writer, warn func(string)) error {
	autoscaler, err := parseName(o.autoscaler)
	if err != nil {
		return err
	}
	config, err := o.cluster.Config()
	if err != nil {
		return err
	}
	cluster, err := doctor.New(config, version.Get().Kubernetes)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	cluster.Autoscaler = autoscaler
	return o.watch.Run(ctx, out, warn, func(ctx context.Context, out io.Writer) error {
		return o.examine(ctx, cluster, out)
	})
}

// examine checks the cluster once and prints the findings. It returns an error if there is a problem.
func (o *options) examine(ctx context.Context, cluster *doctor.Cluster, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, o.cluster.Timeout)
	defer cancel()
	findings, err := cluster.Examine(ctx, time.Now())
	if err != nil {
		return base.Failure(o.cluster.Explain(err))
	}
	o.watch.Begin(out, o.output.Format)
	if o.output.Format == base.FormatMarkdown {
		printMarkdown(base.Escaped(out), findings)
	} else if err := o.output.Print(out, findings, func(out io.Writer) { printFindings(out, findings) }); err != nil {
		return err
	}
	if problems := len(ofLevel(findings, doctor.Problem)); problems > 0 {
		return base.Failure(fmt.Errorf("problems: %d", problems))
	}
	unmade := ofLevel(findings, doctor.Unmade)
	for _, check := range []string{"nodes", "components", "definitions"} {
		if !slices.ContainsFunc(unmade, func(f doctor.Finding) bool { return f.Check == check }) {
			return nil
		}
	}
	return base.Failure(errors.New("nodes, components and definitions could not be read"))
}

// parseName parses the value of --autoscaler, which may be empty.
func parseName(text string) (types.NamespacedName, error) {
	if text == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, _ := strings.Cut(text, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, base.InvalidValue("autoscaler", text, "NAMESPACE/NAME of a Deployment")
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// levels are the levels of findings that are printed one by one, the most severe first.
var levels = []doctor.Level{doctor.Problem, doctor.Unmade, doctor.Warning}

// printFindings prints the problems, the warnings, each with its remedy, and the checks without either in one line.
func printFindings(out io.Writer, findings []doctor.Finding) {
	for _, level := range levels {
		for _, f := range ofLevel(findings, level) {
			fmt.Fprintf(out, "%s %s: %s\n", strings.ToUpper(string(level)), f.Check, base.Escape(f.Message))
			if f.Fix != "" {
				fmt.Fprintf(out, "  remedy: %s\n", base.Escape(f.Fix))
			}
			fmt.Fprintln(out)
		}
	}
	if fine := fineChecks(findings); len(fine) > 0 {
		fmt.Fprintf(out, "OK %s\n", base.Escape(strings.Join(fine, ", ")))
	}
	fmt.Fprintln(out, summary(findings))
}

// printMarkdown prints the findings as printFindings does, as a table with a list of the other checks.
func printMarkdown(out io.Writer, findings []doctor.Finding) {
	fmt.Fprintf(out, "### plimsoll doctor: %s\n\n", summary(findings))
	t := base.NewTable("level", "check", "finding", "remedy")
	rows := 0
	for _, level := range levels {
		for _, f := range ofLevel(findings, level) {
			t.AddRow(string(level), f.Check, f.Message, f.Fix)
			rows++
		}
	}
	if rows > 0 {
		t.Markdown(out)
		fmt.Fprintln(out)
	}
	if fine := fineChecks(findings); len(fine) > 0 {
		fmt.Fprintf(out, "OK: %s\n", base.EscapeMarkdown(base.Escape(strings.Join(fine, ", "))))
	}
}

// ofLevel returns the findings of a level.
func ofLevel(findings []doctor.Finding, level doctor.Level) []doctor.Finding {
	var out []doctor.Finding
	for _, f := range findings {
		if f.Level == level {
			out = append(out, f)
		}
	}
	return out
}

// fineChecks returns the names of the checks whose findings are all OK, in their order.
func fineChecks(findings []doctor.Finding) []string {
	var fine []string
	for _, f := range findings {
		other := func(g doctor.Finding) bool { return g.Check == f.Check && g.Level != doctor.OK }
		if !slices.Contains(fine, f.Check) && !slices.ContainsFunc(findings, other) {
			fine = append(fine, f.Check)
		}
	}
	return fine
}

// summary returns the numbers of problems, warnings, and checks that were made and were not.
func summary(findings []doctor.Finding) string {
	checks, unmade := map[string]bool{}, ofLevel(findings, doctor.Unmade)
	for _, f := range findings {
		checks[f.Check] = true
	}
	text := fmt.Sprintf("%s, %s, %s", format.Of(len(ofLevel(findings, doctor.Problem)), "problem"),
		format.Of(len(ofLevel(findings, doctor.Warning)), "warning"), format.Of(len(checks)-len(unmade), "check"))
	if len(unmade) > 0 {
		text += fmt.Sprintf(", %d not made", len(unmade))
	}
	return text
}
