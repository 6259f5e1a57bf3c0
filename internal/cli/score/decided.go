package score

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/decisions"
)

// decidedOptions are the flags of plimsoll explain pod --as-decided.
type decidedOptions struct {
	// from is the address of the scheduler or a file, empty without --as-decided.
	from, tokenFile, caFile string
}

const (
	// forwardedPort is the value of --as-decided for localAddress.
	forwardedPort = "port"
	localAddress  = "https://127.0.0.1:10259"
	// decisionsTimeout bounds the request, decisionsLimit the size of the answer in bytes.
	decisionsTimeout = time.Minute
	decisionsLimit   = 4 << 30
)

func (d *decidedOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&d.from, "as-decided", "", "show the decision that plimsoll-scheduler made, from its last decisions: `FROM` its "+
		"forwarded port 10259, an https address, or a file with its page /configz")
	flags.Lookup("as-decided").NoOptDefVal = forwardedPort
	flags.StringVar(&d.tokenFile, "scheduler-token-file", "",
		"with --as-decided: file with a token that may get the URL /configz of the scheduler (default the access in the kubeconfig)")
	flags.StringVar(&d.caFile, "scheduler-ca-file", "",
		"with --as-decided: certificate authority of the scheduler; not verified on a loopback address without it")
	base.Rare(cmd, "scheduler-token-file", "scheduler-ca-file")
	for _, flag := range []string{"provider", "address", "load-source", "config", "profile", "scheduler-name", "top"} {
		cmd.MarkFlagsMutuallyExclusive("as-decided", flag)
	}
}

func (d *decidedOptions) validate() error {
	port := d.from[strings.LastIndexByte(d.from, ':')+1:]
	if isPort := d.from != "" && strings.Trim(port, "0123456789") == ""; strings.HasPrefix(d.from, "http://") ||
		isPort && !strings.HasPrefix(d.from, "https://") {
		return base.InvalidValue("as-decided", d.from, "an address with https:// such as "+localAddress+", or a file")
	}
	for flag, value := range map[string]string{"--scheduler-token-file": d.tokenFile, "--scheduler-ca-file": d.caFile} {
		if value != "" && d.from == "" {
			return errors.New(flag + ": requires --as-decided")
		}
	}
	return nil
}

// explainDecided prints the last decision on a pod.
func (o *explainOptions) explainDecided(cmd *cobra.Command, key types.NamespacedName) error {
	if key.Namespace == "" {
		var err error
		if key.Namespace, err = o.live.LoadSource.Namespace(); err != nil {
			return err
		}
	}
	raw, err := o.readDecisions(cmd.Context())
	if err != nil {
		return base.Failure(fmt.Errorf("--as-decided: %w", err))
	}
	var pages map[string]json.RawMessage
	list := decisions.List{}
	if json.Unmarshal(raw, &pages) != nil {
		err = errors.New("must be the page /configz of plimsoll-scheduler, in JSON")
	} else if page, ok := pages[decisions.ConfigzName]; ok {
		err = json.Unmarshal(page, &list)
	} else {
		err = fmt.Errorf("no %s: must be plimsoll-scheduler with --kept-decisions", decisions.ConfigzName)
	}
	if err != nil {
		return base.Failure(fmt.Errorf("--as-decided: %s: %w", o.decided.from, err))
	}
	i := slices.IndexFunc(list.Items, func(d decisions.Decision) bool { return d.Namespace == key.Namespace && d.Pod == key.Name })
	if i < 0 {
		return base.Failure(fmt.Errorf("pod %s: not among the last %s: another scheduler or replica placed it, or it was long ago",
			key, format.Of(len(list.Items), "decision")))
	}
	d := &list.Items[i]
	return o.output.Print(cmd.OutOrStdout(), d, func(out io.Writer) { printDecided(out, &o.output, d) })
}

// readDecisions reads the file or the page.
func (o *explainOptions) readDecisions(ctx context.Context) ([]byte, error) {
	d := &o.decided
	if d.from == forwardedPort {
		d.from = localAddress
	}
	if !strings.HasPrefix(d.from, "https://") {
		return os.ReadFile(d.from)
	}
	address, err := url.Parse(d.from)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{
		Timeout: decisionsTimeout, BearerTokenFile: d.tokenFile, TLSClientConfig: rest.TLSClientConfig{CAFile: d.caFile},
	}
	if ip := net.ParseIP(address.Hostname()); address.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		config.Insecure = d.caFile == "" // a forwarded port: the scheduler's certificate is self-signed
	}
	if d.tokenFile == "" {
		cluster, err := o.live.LoadSource.Config()
		if err != nil {
			return nil, err
		}
		config.BearerToken, config.BearerTokenFile, config.ExecProvider = cluster.BearerToken, cluster.BearerTokenFile, cluster.ExecProvider
		config.CertFile, config.KeyFile = cluster.CertFile, cluster.KeyFile
		config.CertData, config.KeyData = cluster.CertData, cluster.KeyData
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // keeps the token from other hosts
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(d.from, "/")+"/configz", nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if errors.Is(err, syscall.ECONNREFUSED) && config.Insecure {
		return nil, fmt.Errorf("%w: forward the port of the scheduler first: "+
			"kubectl port-forward -n plimsoll-system deployment/plimsoll-scheduler 10259", err)
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: the token or certificate must permit get of the URL /configz", request.URL, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, decisionsLimit))
}

// printDecided prints a decision: a sentence, the scores of both nodes and what was known of them.
func printDecided(out io.Writer, o *base.Output, d *decisions.Decision) {
	fmt.Fprintf(out, "%s/%s -> %s at %s by %s\n", d.Namespace, d.Pod, d.Node.Name, d.Time.UTC().Format(time.RFC3339), d.Scheduler)
	if d.Scored == 0 {
		fmt.Fprintln(out, "No node was scored: only one was feasible, or the scheduler used the scores of an equal pod.")
	}
	nodes := []*decisions.ScoredNode{&d.Node}
	if d.Next != nil {
		nodes = append(nodes, d.Next)
		fmt.Fprintf(out, "%s scored %d, the next best of %s, %s, scored %d.\n",
			d.Node.Name, d.Node.Total, format.Of(d.Scored, "node"), d.Next.Name, d.Next.Total)
	}
	head := []string{"plugin"}
	for _, n := range nodes {
		head = append(head, n.Name)
	}
	t := base.NewTable(head...)
	row := rowsOf(t, nodes)
	if d.Scored > 0 {
		row("total", func(n *decisions.ScoredNode) string { return fmt.Sprint(n.Total) })
	}
	var equal []string
	for i, s := range d.Node.Scores {
		if d.Next != nil && i < len(d.Next.Scores) && d.Next.Scores[i] == s {
			equal = append(equal, s.Plugin)
			continue
		}
		row(s.Plugin, func(n *decisions.ScoredNode) string {
			if i >= len(n.Scores) {
				return "-"
			}
			return fmt.Sprintf("%d (%d)", n.Scores[i].Weighted, n.Scores[i].Raw)
		})
	}
	row("CPU requested", func(n *decisions.ScoredNode) string {
		return format.Cores(n.CPURequested) + " of " + format.Cores(n.CPUAllocatable)
	})
	row("memory requested", func(n *decisions.ScoredNode) string {
		return format.Bytes(n.MemoryRequested) + " of " + format.Bytes(n.MemoryAllocatable)
	})
	row("pods", func(n *decisions.ScoredNode) string { return fmt.Sprint(n.Pods) })
	row("load known", func(n *decisions.ScoredNode) string {
		if n.Load == nil {
			return "none"
		}
		age := format.Duration(int64(n.Load.AgeSeconds))
		return fmt.Sprintf("CPU %.0f %%, memory %.0f %%, %s old", 100*n.Load.CPU, 100*n.Load.Memory, age)
	})
	t.Print(out, o)
	if len(equal) > 0 {
		fmt.Fprintln(out, "the same on both nodes:", base.Escape(strings.Join(equal, ", ")))
	}
}
