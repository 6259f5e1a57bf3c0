package tune

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
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

// scoreWeight returns the weight of the score of a plugin, 0 if it does not score: the weight under score or, unless the plugin is
// disabled there, the weight under multiPoint.
func scoreWeight(profile *internalconfig.KubeSchedulerProfile, name string) int {
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
	return fields(args)[d.Argument]
}

// fields returns the fields of the arguments of a plugin of Plimsoll, nil if it has none.
func fields(args runtime.Object) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(args)
	if err != nil {
		return nil // arguments are plain structures
	}
	return fields
}

// at returns the configuration in force with the settings of a point. Only settings that differ are changed.
func (c *current) at(p Point) (engine.NamedConfig, error) {
	var document map[string]any
	if err := yaml.Unmarshal(c.profile.Text, &document); err != nil {
		return engine.NamedConfig{}, err
	}
	profile, err := tunedProfile(document, c.index)
	if err != nil {
		return engine.NamedConfig{}, err
	}
	for d, dimension := range Space {
		switch {
		case p[d] == c.point[d]:
		case dimension.Argument == "":
			err = errors.Join(err, setWeight(profile, dimension.Plugin, p.value(d).(int), c.point.value(d) != 0))
		default:
			err = errors.Join(err, setArgument(profile, dimension.Plugin, dimension.Argument, p.value(d)))
		}
	}
	for _, name := range readers() {
		if p.weight(name) > 0 && c.point.weight(name) == 0 {
			err = errors.Join(err, setLoadSource(profile, name))
		}
	}
	if err != nil {
		return engine.NamedConfig{}, err
	}
	text, err := yaml.Marshal(document)
	return engine.NamedConfig{Name: p.String(), Text: text}, err
}

// tunedProfile returns the profile with an index, which it adds if the document has no profiles.
func tunedProfile(document map[string]any, index int) (map[string]any, error) {
	list, err := child[[]any](document, profilesField)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		list = []any{map[string]any{schedulerField: v1.DefaultSchedulerName}}
		document[profilesField] = list
	}
	profile, ok := list[index].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s[%d]: must be an object", profilesField, index)
	}
	return profile, nil
}

// child returns the field of an object, the zero value if it is missing or null.
func child[T any](object map[string]any, field string) (T, error) {
	value, ok := object[field].(T)
	if !ok && object[field] != nil {
		return value, fmt.Errorf("%s: found a %T, must be a %T", field, object[field], value)
	}
	return value, nil
}

// object returns the object in a field, which it adds if it is missing.
func object(parent map[string]any, field string) (map[string]any, error) {
	value, err := child[map[string]any](parent, field)
	if value == nil && err == nil {
		value = map[string]any{}
		parent[field] = value
	}
	return value, err
}

// setWeight sets the weight of the score of a plugin. inherited is set if it scores without being listed.
func setWeight(profile map[string]any, name string, weight int, inherited bool) error {
	plugins, err := object(profile, pluginsField)
	if err != nil {
		return err
	}
	score, err := object(plugins, scoreField)
	if err != nil {
		return err
	}
	item := map[string]any{nameField: name}
	err = setListed(score, disabledField, item, weight == 0 && inherited)
	item = map[string]any{nameField: name, weightField: weight}
	err = errors.Join(err, setListed(score, enabledField, item, weight > 0))
	if len(score) == 0 {
		delete(plugins, scoreField)
	}
	return err
}

// setListed replaces the item of a plugin in a list of plugins, or removes it if the plugin is not to be listed.
func setListed(score map[string]any, field string, item map[string]any, listed bool) error {
	list, err := child[[]any](score, field)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(other any) bool { return named(other, item[nameField].(string)) })
	if listed {
		list = append(list, item)
	}
	score[field] = list
	if len(list) == 0 {
		delete(score, field)
	}
	return nil
}

// named reports whether an item of a list has a name.
func named(item any, name string) bool {
	object, ok := item.(map[string]any)
	return ok && object[nameField] == name
}

// arguments returns the arguments of a plugin, which it adds if they are missing.
func arguments(profile map[string]any, name string) (map[string]any, error) {
	list, err := child[[]any](profile, pluginConfigField)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(item any) bool { return named(item, name) })
	if i < 0 {
		i = len(list)
		list = append(list, map[string]any{nameField: name})
		profile[pluginConfigField] = list
	}
	return object(list[i].(map[string]any), argsField)
}

// setArgument sets an argument, a path with dots, of a plugin.
func setArgument(profile map[string]any, plugin, path string, value any) error {
	parent, err := arguments(profile, plugin)
	if err != nil {
		return err
	}
	fields := strings.Split(path, ".")
	for _, field := range fields[:len(fields)-1] {
		if parent, err = object(parent, field); err != nil {
			return err
		}
	}
	parent[fields[len(fields)-1]] = value
	return nil
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
func setLoadSource(profile map[string]any, plugin string) error {
	args, err := arguments(profile, plugin)
	if err != nil {
		return err
	}
	if args[watcherField] == nil && args[providerField] == nil {
		field, source, err := knownSource(profile)
		if err != nil {
			return err
		}
		args[field] = source
	}
	if hasField(plugin, podUsageField) && args[podUsageField] == nil {
		args[podUsageField] = map[string]any{"type": metricprovider.MetricsServer}
	}
	return nil
}

// knownSource returns the load source of the first plugin with a load source, or the default.
func knownSource(profile map[string]any) (field string, source any, err error) {
	for _, plugin := range readers() {
		list, err := child[[]any](profile, pluginConfigField)
		if err != nil {
			return "", nil, err
		}
		i := slices.IndexFunc(list, func(item any) bool { return named(item, plugin) })
		if i < 0 {
			continue
		}
		args, err := child[map[string]any](list[i].(map[string]any), argsField)
		if err != nil {
			return "", nil, err
		}
		for _, field := range []string{watcherField, providerField} {
			if args[field] != nil {
				return field, args[field], nil
			}
		}
	}
	return watcherField, defaultWatcher, nil
}
