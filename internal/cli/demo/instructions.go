package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/demo/node"
)

// instructions returns the last lines of the demo: the running programs, the profiles, and commands to try.
func (d *demos) instructions(url string) string {
	var profiles []string
	for _, profile := range d.node.Profiles() {
		profiles = append(profiles, profile.Name)
	}
	var text strings.Builder
	text.WriteString(`the cluster runs until you press Ctrl-C; all nodes are simulated

  live page:  ` + url + `
  profiles:   ` + strings.Join(profiles, ", ") + `
              (a pod selects one with spec.schedulerName)
  autoscaler: built-in stand-in for an autoscaler

Commands to try, in another terminal in the project's folder:
`)
	for _, command := range d.commands() {
		text.WriteString("\n  # " + command.Purpose + "\n  " + command.Text + "\n")
	}
	return text.String()
}

// commands returns commands to try in the project's folder, in this order.
func (d *demos) commands() []node.LiveCommand {
	kubectl := program("kubectl")
	commands := []node.LiveCommand{
		{Purpose: "Use the demo's cluster in this terminal.", Text: "export KUBECONFIG=" + d.env.Plane.Kubeconfig},
		{
			Purpose: "Create a pod; the live page shows which node its profile and the default profile select, and why.",
			Text:    kubectl + ` run try --image=registry.k8s.io/pause:3.10 --overrides='{"spec":{"schedulerName":"plimsoll-scheduler"}}'`,
		},
		{
			Purpose: "Keep slack in the node pool general; the autoscaler adds a node for it.",
			Text:    kubectl + " apply -f examples/slack/policy.yaml",
		},
		{
			Purpose: "Wait until it is available, and show what the autoscaler reports.",
			Text:    kubectl + " wait --for=condition=Ready --timeout=2m resourceslack/general && " + program("plimsoll") + " slack status",
		},
		{
			Purpose: "Show the load of the nodes as the scheduler reads it.",
			Text:    program("plimsoll") + " load top --config " + d.env.SchedulerConfig(),
		},
		{
			Purpose: "Show the scores and the load by which the scheduler places the pod.",
			Text:    program("plimsoll") + " explain pod try",
		},
	}
	if !d.fleet.HasRun() {
		return commands
	}
	return append(
		commands,
		node.LiveCommand{
			Purpose: "Give a managed cluster more CPUs (managed clusters are objects without agents).",
			Text: kubectl + " patch managedcluster cluster2 --subresource=status --type=merge " +
				`--patch='{"status":{"allocatable":{"cpu":"50"}}}'`,
		},
		node.LiveCommand{
			Purpose: "Show which cluster a placement selects now, and why.",
			Text:    program("plimsoll") + " placement explain where-most-is -n team",
		},
		node.LiveCommand{
			Purpose: "Show why a workload of 32 CPUs per pod fits one cluster, although other clusters have more CPUs free.",
			Text:    program("plimsoll") + " placement explain solver -n team",
		},
	)
}

// program returns the command for a program: the program in PATH if it is kubectl, or else the program beside this program, as make demo
// builds it, or else its name.
func program(name string) string {
	if _, err := exec.LookPath(name); err == nil && name == "kubectl" {
		return name
	}
	self, err := os.Executable()
	if err != nil {
		return name
	}
	file := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(file); err != nil {
		return name
	}
	if dir, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(dir, file); err == nil && !strings.HasPrefix(relative, "..") {
			return relative
		}
	}
	return file
}
