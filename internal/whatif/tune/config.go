package tune

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/plugins/predictedutilization"
)

// Fields of a KubeSchedulerConfiguration.
const (
	profilesField     = "profiles"
	pluginsField      = "plugins"
	scoreField        = "score"
	enabledField      = "enabled"
	disabledField     = "disabled"
	pluginConfigField = "pluginConfig"
	argsField         = "args"
	nameField         = "name"
	weightField       = "weight"
	schedulerField    = "schedulerName"
	watcherField      = "watcherAddress"
	providerField     = "metricProvider"
	podUsageField     = "podUsage"
)

// defaultWatcher is the address of the load-watcher service of the chart.
const defaultWatcher = "http://plimsoll-load-watcher.plimsoll-system:2020"

// current is the configuration in force.
type current struct {
	profile engine.NamedConfig
	// index of the profile to tune among the profiles of the configuration.
	index int
	point Point
	// hasTerms is set if PredictedUtilization has terms of requests.
	hasTerms bool
}

// newCurrent reads the configuration in force. With several profiles, the profile for default-scheduler is tuned.
func newCurrent(p engine.NamedConfig) (*current, error) {
	cfg, err := p.Config()
	if err != nil {
		return nil, err
	}
	c := &current{profile: p}
	if len(cfg.Profiles) > 1 {
		c.index = slices.IndexFunc(cfg.Profiles, func(p internalconfig.KubeSchedulerProfile) bool {
			return p.SchedulerName == v1.DefaultSchedulerName
		})
		if c.index < 0 {
			var names []string
			for i := range cfg.Profiles {
				names = append(names, cfg.Profiles[i].SchedulerName)
			}
			return nil, fmt.Errorf("%s: found the profiles %s: must be one profile, or have one for %s", p.Name,
				strings.Join(names, ", "), v1.DefaultSchedulerName)
		}
	}
	c.point = pointOf(&cfg.Profiles[c.index])
	terms := termWeights(&cfg.Profiles[c.index])
	c.hasTerms = terms[fitPlugin]+terms[balancedPlugin] > 0
	return c, nil
}

// pointOf returns the point that is nearest to a profile.
func pointOf(profile *internalconfig.KubeSchedulerProfile) Point {
	var p Point
	for d, dimension := range Space {
		if dimension.Argument == "" {
			p[d] = nearest(dimension, scoreWeight(profile, dimension.Plugin))
		} else {
			p[d] = nearest(dimension, argument(profile, dimension))
		}
	}
	return p
}

// scoreWeight returns the weight of the score of a plugin, 0 if it does not score. The terms of PredictedUtilization count as scores of
// the plugins that they are equal to.
func scoreWeight(profile *internalconfig.KubeSchedulerProfile, name string) int {
	terms := termWeights(profile)
	if weight, isTerm := terms[name]; isTerm && terms[fitPlugin]+terms[balancedPlugin] > 0 {
		return weight
	}
	return enabledWeight(profile, name)
}

// termWeights returns the weights of the terms of PredictedUtilization by plugin, nil if it has no arguments.
func termWeights(profile *internalconfig.KubeSchedulerProfile) map[string]int {
	weight := enabledWeight(profile, predictedutilization.Name)
	for _, plugin := range profile.PluginConfig {
		if args, ok := plugin.Args.(*config.PredictedUtilizationArgs); ok && plugin.Name == predictedutilization.Name {
			w := &args.TermWeights
			own, least := int(ptr.Deref(w.Utilization, 0)), int(ptr.Deref(w.LeastAllocated, 0))
			balanced := int(ptr.Deref(w.BalancedAllocation, 0))
			sum := max(own+least+balanced, 1)
			return map[string]int{
				predictedutilization.Name: weight * own / sum, fitPlugin: weight * least / sum, balancedPlugin: weight * balanced / sum,
			}
		}
	}
	return nil
}

// enabledWeight returns the weight under score or, unless the plugin is disabled there, the weight under multiPoint.
func enabledWeight(profile *internalconfig.KubeSchedulerProfile, name string) int {
	plugins := profile.Plugins
	if plugins == nil {
		return 0
	}
	named := func(p internalconfig.Plugin) bool { return p.Name == name }
	if i := slices.IndexFunc(plugins.Score.Enabled, named); i >= 0 {
		return int(cmp.Or(plugins.Score.Enabled[i].Weight, 1))
	}
	if slices.ContainsFunc(plugins.Score.Disabled, func(p internalconfig.Plugin) bool { return p.Name == name || p.Name == "*" }) {
		return 0
	}
	if i := slices.IndexFunc(plugins.MultiPoint.Enabled, named); i >= 0 {
		return int(cmp.Or(plugins.MultiPoint.Enabled[i].Weight, 1))
	}
	return 0
}

// argument returns the value of an argument, its default if the profile has none.
func argument(profile *internalconfig.KubeSchedulerProfile, d Dimension) any {
	args := config.Defaults()[d.Plugin]
	for _, plugin := range profile.PluginConfig {
		if plugin.Name == d.Plugin {
			args = plugin.Args
		}
	}
	if fit, ok := args.(*internalconfig.NodeResourcesFitArgs); ok && fit.ScoringStrategy != nil {
		return string(fit.ScoringStrategy.Type)
	}
	if args == nil || d.Plugin == fitPlugin {
		return string(internalconfig.LeastAllocated)
	}
	fields, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(args) // arguments are plain structures
	return fields[d.Argument]
}

// at returns the configuration in force with the settings of a point. Only settings that differ are changed.
func (c *current) at(p Point) (engine.NamedConfig, error) {
	var document map[string]any
	if err := yaml.Unmarshal(c.profile.Text, &document); err != nil {
		return engine.NamedConfig{}, err
	}
	profile := tunedProfile(document, c.index)
	if c.hasTerms && p != c.point { // in a point each plugin has its own weight
		setArgument(profile, predictedutilization.Name, "termWeights", map[string]any{})
		for d, dimension := range Space {
			switch dimension.Plugin {
			case predictedutilization.Name, fitPlugin, balancedPlugin:
				if dimension.Argument == "" {
					setWeight(profile, dimension.Plugin, p.value(d).(int), true)
				}
			}
		}
	}
	for d, dimension := range Space {
		switch {
		case p[d] == c.point[d]:
		case dimension.Argument == "":
			setWeight(profile, dimension.Plugin, p.value(d).(int), c.point.value(d) != 0)
		default:
			setArgument(profile, dimension.Plugin, dimension.Argument, p.value(d))
		}
	}
	for _, name := range readers() {
		if p.weight(name) > 0 && c.point.weight(name) == 0 {
			setLoadSource(profile, name)
		}
	}
	text, err := yaml.Marshal(document)
	return engine.NamedConfig{Name: p.String(), Text: text}, err
}

// tunedProfile returns the profile with an index, which it adds if the document has no profiles.
func tunedProfile(document map[string]any, index int) map[string]any {
	list := child[[]any](document, profilesField)
	if len(list) == 0 {
		list = []any{map[string]any{schedulerField: v1.DefaultSchedulerName}}
		document[profilesField] = list
	}
	if list[index] == nil {
		list[index] = map[string]any{}
	}
	return list[index].(map[string]any)
}

// child returns the field of an object, the zero value if it is missing or null. Fields have the types of a
// KubeSchedulerConfiguration: the document has been decoded as one.
func child[T any](object map[string]any, field string) T {
	value, _ := object[field].(T)
	return value
}

// object returns the object in a field, which it adds if it is missing.
func object(parent map[string]any, field string) map[string]any {
	value := child[map[string]any](parent, field)
	if value == nil {
		value = map[string]any{}
		parent[field] = value
	}
	return value
}

// setWeight sets the weight of the score of a plugin. inherited is set if it scores without being listed.
func setWeight(profile map[string]any, name string, weight int, inherited bool) {
	plugins := object(profile, pluginsField)
	score := object(plugins, scoreField)
	setListed(score, disabledField, map[string]any{nameField: name}, weight == 0 && inherited)
	setListed(score, enabledField, map[string]any{nameField: name, weightField: weight}, weight > 0)
	if len(score) == 0 {
		delete(plugins, scoreField)
	}
}

// setListed replaces the item of a plugin in a list of plugins, or removes it if the plugin is not to be listed.
func setListed(score map[string]any, field string, item map[string]any, listed bool) {
	list := slices.DeleteFunc(child[[]any](score, field), func(other any) bool { return named(other, item[nameField].(string)) })
	if listed {
		list = append(list, item)
	}
	score[field] = list
	if len(list) == 0 {
		delete(score, field)
	}
}

// named reports whether an item of a list has a name.
func named(item any, name string) bool {
	object, ok := item.(map[string]any)
	return ok && object[nameField] == name
}

// pluginConfig returns the item of a plugin in the list of arguments, nil if there is none.
func pluginConfig(profile map[string]any, plugin string) map[string]any {
	for _, item := range child[[]any](profile, pluginConfigField) {
		if named(item, plugin) {
			return item.(map[string]any)
		}
	}
	return nil
}

// arguments returns the arguments of a plugin, which it adds if they are missing.
func arguments(profile map[string]any, plugin string) map[string]any {
	item := pluginConfig(profile, plugin)
	if item == nil {
		item = map[string]any{nameField: plugin}
		profile[pluginConfigField] = append(child[[]any](profile, pluginConfigField), item)
	}
	return object(item, argsField)
}

// setArgument sets an argument, a path with dots, of a plugin.
func setArgument(profile map[string]any, plugin, path string, value any) {
	parent := arguments(profile, plugin)
	fields := strings.Split(path, ".")
	for _, field := range fields[:len(fields)-1] {
		parent = object(parent, field)
	}
	parent[fields[len(fields)-1]] = value
}

// readers returns the plugins that read load, by name.
func readers() []string {
	return slices.DeleteFunc(Plugins(), func(plugin string) bool { return !hasField(plugin, watcherField) })
}

// hasField reports whether the arguments of a plugin of Plimsoll have a field.
func hasField(plugin, field string) bool {
	args, ok := config.Defaults()[plugin]
	return ok && slices.ContainsFunc(reflect.VisibleFields(reflect.TypeOf(args).Elem()), func(f reflect.StructField) bool {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name == field
	})
}

// setLoadSource makes a plugin read load as another plugin of the profile does or, without any, from the load-watcher service of the
// examples, and the usage of pods from metrics-server. Sources that the arguments have are kept.
func setLoadSource(profile map[string]any, plugin string) {
	args := arguments(profile, plugin)
	if args[watcherField] == nil && args[providerField] == nil {
		field, source := knownSource(profile)
		args[field] = source
	}
	if hasField(plugin, podUsageField) && args[podUsageField] == nil {
		args[podUsageField] = map[string]any{"type": metricprovider.MetricsServer}
	}
}

// knownSource returns the load source of the first plugin with a load source, or the default.
func knownSource(profile map[string]any) (field string, source any) {
	for _, plugin := range readers() {
		args := child[map[string]any](pluginConfig(profile, plugin), argsField)
		for _, field := range []string{watcherField, providerField} {
			if args[field] != nil {
				return field, args[field]
			}
		}
	}
	return watcherField, defaultWatcher
}
