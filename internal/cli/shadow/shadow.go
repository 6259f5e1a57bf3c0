// Package shadow has the command that follows a cluster and states what other profiles would have done.
package shadow

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	clirecord "github.com/plimsoll-k8s/plimsoll/internal/cli/record"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recommend"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/record"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/shadow"
)

// options are the flags of plimsoll shadow.
type options struct {
	following  clirecord.Following
	folder     string
	every      time.Duration
	profile    string
	candidates []string
	autoscaler string
	days, keep int
	listen     string
	output     base.Output
	run        compare.Run
	saturation float64
}

const (
	// maxCandidates bounds the time of the replays.
	maxCandidates = 5
	// maxDays is the largest number of days.
	maxDays = 365
	// maxPending is the number of windows that are replayed after a restart; older windows are skipped.
	maxPending = 24
)

// The rights of the command, without the usage of pods. Only pods and nodes are required.
//
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces;services;replicationcontrollers;persistentvolumeclaims;persistentvolumes,verbs=list
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets;daemonsets,verbs=list
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=list
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses;csinodes;csidrivers;csistoragecapacities;volumeattachments,verbs=list
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=list
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list
// +kubebuilder:rbac:groups=autoscaling.k8s.io,resources=verticalpodautoscalers,verbs=list
// +kubebuilder:rbac:groups="",resources=limitranges;resourcequotas,verbs=list
// +kubebuilder:rbac:groups=resource.k8s.io,resources=resourceclaims;resourceclaimtemplates;deviceclasses,verbs=list
// +kubebuilder:rbac:groups=resource.k8s.io,resources=resourceslices;devicetaintrules,verbs=list

// NewCommand returns the command plimsoll shadow.
func NewCommand() *cobra.Command {
	o := options{run: whatif.RunLowPriority}
	cmd := &cobra.Command{
		Use:   "shadow",
		Short: "Watch a cluster, and state what other profiles would change",
		Long: `Follow the cluster into recordings until interrupted. Every hour, the last complete window is
replayed with the profile in force and with each candidate, in a process of lower
priority. The results of the last days are served as a page, as metrics and as JSON.

Nothing in the cluster is changed: the command only lists and watches objects. A restart
begins another window.`,
		Example: `  # What would the profile predicted have done to this cluster?
  plimsoll shadow

  # Compare two candidates with the configuration of the scheduler.
  plimsoll shadow --profile scheduler.yaml --candidate predicted --candidate low-risk --folder shadow

  # Also recommend the configuration with the lowest cost, once a day.
  plimsoll shadow --autoscaler shape=16x64,boot=120,cost=0.80

  # Print the result of the last days.
  plimsoll shadow report shadow`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.start(cmd) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.folder, "folder", defaultFolder, "directory with recordings and results")
	flags.DurationVar(&o.every, "every", time.Hour, "length of a window")
	flags.StringVar(&o.profile, "profile", "", "profile in force: built-in profile, or file with a KubeSchedulerConfiguration "+
		"(default from the cluster, or kube-scheduler's default)")
	flags.StringArrayVar(&o.candidates, "candidate", []string{"predicted"},
		"profile to compare: built-in profile, or file with a KubeSchedulerConfiguration; may be repeated")
	flags.StringVar(&o.autoscaler, "autoscaler", "", "recommend profile, requests and slack once a day for these nodes, such as "+
		"shape=16x64,boot=120,cost=0.80 (plimsoll recommend)")
	whatif.AddSaturationFlag(cmd, &o.saturation)
	addDaysFlag(cmd, &o.days)
	flags.IntVar(&o.keep, "keep", 30, "days for which results are kept")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:7654", "address of the page and of the metrics")
	o.following.AddFlags(cmd)
	o.output.AddFlag(cmd)
	base.CompleteWith(cmd, "candidate", engine.BuiltInProfiles...)
	base.CompleteWith(cmd, "profile", engine.BuiltInProfiles...)
	base.Rare(cmd, "step", "selector", "keep", "max-size", "load-source")
	cmd.AddCommand(newReportCommand())
	return cmd
}

// validate returns an error that names the flag with an invalid value.
func (o *options) validate() error {
	if err := base.CheckFileName("--folder", o.folder); err != nil {
		return err
	}
	if info, err := os.Stat(o.folder); err == nil && !info.IsDir() {
		return base.InvalidValue("folder", o.folder, "a directory")
	}
	switch {
	case o.every > 24*time.Hour:
		return base.InvalidValue("every", o.every, "at most 24h")
	case len(o.candidates) == 0 || len(o.candidates) > maxCandidates:
		return fmt.Errorf("--candidate: found %d values: must be from 1 to %d", len(o.candidates), maxCandidates)
	case o.keep < o.days || o.keep > maxDays:
		return base.InvalidValue("keep", o.keep, fmt.Sprintf("from --days (%d) to %d", o.days, maxDays))
	}
	if err := base.CheckAddress("listen", o.listen); err != nil {
		return err
	}
	if o.profile != "" {
		if _, err := read("profile", o.profile); err != nil {
			return err
		}
	}
	for i, name := range o.candidates {
		if slices.Contains(o.candidates[:i], name) {
			return fmt.Errorf("--candidate: found %s twice", name)
		}
	}
	return validateDays(o.days)
}

// read reads profiles, and validates their configuration.
func read(flag string, names ...string) ([]engine.NamedConfig, error) {
	profiles := make([]engine.NamedConfig, 0, len(names))
	for _, name := range names {
		profile, err := engine.ReadConfig(name)
		if err == nil {
			_, err = profile.Config()
		}
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		profiles = append(profiles, profile)
	}
	return profiles, nil
}

// start follows the cluster and replays windows until the command is interrupted.
func (o *options) start(cmd *cobra.Command) error {
	if err := o.validate(); err != nil {
		return err
	}
	candidates, err := read("candidate", o.candidates...)
	if err != nil {
		return err
	}
	o.run = compare.WithSaturation(o.saturation, o.run)
	s := &server{options: o, out: cmd.OutOrStdout(), wake: make(chan struct{}, 1)}
	if o.autoscaler != "" {
		if s.scaled, err = scaling.Parse([]string{o.autoscaler}); err != nil {
			return fmt.Errorf("--autoscaler: %w", err)
		}
		s.scaled.Groups[0].AdoptOthers = true
	}
	settings, err := o.following.Settings(cmd, o.folder, "every", o.every)
	if err != nil {
		return err
	}
	current, err := o.current(cmd.Context(), settings.Client, settings.Log)
	if err != nil {
		return err
	}
	for _, candidate := range candidates {
		if candidate.Name == current.Name {
			return fmt.Errorf("--candidate: %s is the profile in force: must be another", candidate.Name)
		}
	}
	s.settings = settings
	s.profiles = append([]engine.NamedConfig{current}, candidates...)
	settings.Lock, err = record.LockFolder(o.folder)
	if err != nil {
		return base.Failure(fmt.Errorf("--folder: %w", err))
	}
	defer settings.Lock.Close()
	if s.store, err = shadow.OpenStore(o.folder, time.Duration(o.keep)*24*time.Hour); err != nil {
		return base.Failure(fmt.Errorf("--folder: %w", err))
	}
	for _, err := range s.store.Damaged {
		s.settings.Log(err.Error())
	}
	listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", o.listen)
	if err != nil {
		return base.Failure(fmt.Errorf("--listen: %w", err))
	}
	return base.Failure(s.run(cmd.Context(), listener))
}

// server follows a cluster and replays its windows.
type server struct {
	*options
	settings *record.FollowConfig
	out      io.Writer
	// profiles are the profile in force and the candidates.
	profiles []engine.NamedConfig
	store    *shadow.Store
	shadow   shadow.Shadow
	// scaled is the autoscaler of recommendations, without groups for none, and recommended the time of the last attempt.
	scaled      scaling.Spec
	recommended time.Time
	// wake has an element if a recording may be finished. All recordings but current are.
	wake    chan struct{}
	current atomic.Value
}

// run runs until ctx ends, the folder cannot be written or the listener fails.
func (s *server) run(ctx context.Context, listener net.Listener) error {
	s.settings.Log(fmt.Sprintf("serving http://%s, windows of %s, profile in force: %s", listener.Addr(), s.every, s.profiles[0].Name))
	s.settings.Started = func(name string) {
		s.current.Store(name)
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	s.wake <- struct{}{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return shadow.Serve(ctx, listener, s.report) })
	group.Go(func() error { return record.Follow(ctx, *s.settings) })
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-s.wake:
				s.replayPending(ctx)
				s.recommend(ctx, time.Now())
			}
		}
	})
	return group.Wait()
}

// recommendEvery is the time between two recommendations.
const recommendEvery = 24 * time.Hour

// recommend computes a recommendation over all recordings once a day. Recordings that are too short are reported, and tried again the next
// day.
func (s *server) recommend(ctx context.Context, now time.Time) {
	if len(s.scaled.Groups) == 0 || now.Sub(s.recommended) < recommendEvery || ctx.Err() != nil {
		return
	}
	s.recommended = now
	spec := s.scaled
	policy, err := input.SlackPolicy("", "policy", "")
	if err == nil {
		policy.Spec.Mirrors.NamespaceSelector = nil
		var found *recommend.Result
		found, err = recommend.Find(ctx, recommend.Options{
			Source: recording.Source{
				Recording: s.folder,
				NoSpare:   true,
			},
			Folder:     s.store.Folder(),
			Current:    s.profiles[0],
			Profiles:   s.profiles,
			Policy:     policy,
			Autoscaler: &spec,
			HasIdle:    strings.Contains(s.autoscaler, "idle="),
			Change:     recommend.Changes{Profile: true, Requests: true, Slack: true},
			Metrics:    shadow.Metrics,
			Run:        s.options.run,
			Report:     func(string) {},
		})
		if err == nil {
			s.settings.Log(found.Verdict.Sentence)
			err = s.store.SetRecommendation(found)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.settings.Log("recommendation: " + err.Error())
	}
}

// report returns the current report.
func (s *server) report() *shadow.Report {
	return reportOf(s.store, s.folder, s.days, time.Now())
}

// reportOf returns the report on the last days before a time. The recordings are in a folder.
func reportOf(store *shadow.Store, folder string, days int, now time.Time) *shadow.Report {
	from := now.AddDate(0, 0, -days)
	r := shadow.NewReport(store.Windows(from), from, now)
	r.LowestCost = store.Recommendation()
	if names, _ := record.Recordings(folder); len(names) > 0 {
		r.Began = record.StartOf(names[len(names)-1])
	}
	return r
}

// pending returns the recordings without a result among the last maxPending finished recordings, the newest first.
func (s *server) pending(now time.Time) ([]string, error) {
	names, err := record.Recordings(s.folder)
	names = slices.DeleteFunc(names, func(name string) bool {
		return name == s.current.Load() || now.Sub(record.StartOf(name)) > time.Duration(s.keep)*24*time.Hour
	})
	names = slices.DeleteFunc(names[max(0, len(names)-maxPending):], s.store.Has)
	slices.Reverse(names)
	return names, err
}

// replayPending replays all pending recordings. Failures are reported, and tried again after the next window.
func (s *server) replayPending(ctx context.Context) {
	names, err := s.pending(time.Now())
	if err != nil {
		s.settings.Log(err.Error())
	}
	for _, name := range names {
		err := s.replay(ctx, name)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.settings.Log(fmt.Sprintf("%s: %v", name, err))
		}
	}
}

// replay replays a recording, stores the result and prints the verdicts.
func (s *server) replay(ctx context.Context, name string) error {
	w, err := s.shadow.Replay(ctx, name, record.StartOf(name), s.profiles, s.options.run)
	if err != nil {
		return err
	}
	if w.Error != "" {
		s.settings.Log(fmt.Sprintf("%s: not replayed: %s", name, w.Error))
		w.From = record.StartOf(name)
		w.To = w.From
	}
	if err := s.store.Add(w, time.Now()); err != nil {
		return err
	}
	r := s.report()
	return s.output.Print(s.out, r, func(out io.Writer) {
		fmt.Fprintf(out, "%s replayed\n", w.File)
		for _, v := range r.Verdicts {
			fmt.Fprintln(out, v.Sentence)
		}
	})
}
