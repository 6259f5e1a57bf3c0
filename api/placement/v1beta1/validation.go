package v1beta1

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// The bounds of numbers equal the bounds in the CRD.
const (
	MinWeight            = -10
	MaxWeight            = 10
	MaxTolerationSeconds = 100 * 365 * 24 * 60 * 60
	MaxSpreadConstraints = 8
	MaxReplicas          = 1_000_000_000
)

const (
	maxKeyLength   = 316
	maxValueLength = 1024
	maxNameLength  = 253
)

// The patterns of keys of taints and topologies, names of groups, and rate limits equal
// the patterns in the CRD.
var (
	keyPattern = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?` +
		`(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)
	groupPattern = regexp.MustCompile(`^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$`)
	limitPattern = regexp.MustCompile(`^[0-9]+[hms]$`)
)

// Validate returns the errors in a placement with defaults. Hubs can have a CRD that
// validates less than the CRD of this type: Validate rejects everything that this CRD
// rejects, and selectors that no label can meet. It does not check the lengths of
// lists, which are limited for the cost budget of the API server, nor CEL expressions.
func (s *PlacementSpec) Validate() field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if n := s.NumberOfClusters; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("numberOfClusters"), *n, "must be at least 0; leave it out for all clusters"))
	}
	for i := range s.Predicates {
		selector := &s.Predicates[i].RequiredClusterSelector
		at := path.Child("predicates").Index(i).Child("requiredClusterSelector")
		errs = append(errs, validateSelectors(at, &selector.LabelSelector, &selector.ClaimSelector)...)
	}
	errs = append(errs, s.PrioritizerPolicy.validate(path.Child("prioritizerPolicy"))...)
	errs = append(errs, validateSpread(path.Child("spreadPolicy", "spreadConstraints"), s.SpreadPolicy.SpreadConstraints)...)
	for i := range s.Tolerations {
		errs = append(errs, validateToleration(path.Child("tolerations").Index(i), &s.Tolerations[i])...)
	}
	errs = append(errs, validateGroups(path.Child("decisionStrategy", "groupStrategy"), &s.DecisionStrategy.GroupStrategy)...)
	errs = append(errs, oneOf(path.Child("sortBy"), s.SortBy, clusterv1beta1.PlacementSortByClusterName,
		clusterv1beta1.PlacementSortByScore)...)
	if !limitPattern.MatchString(s.ScoreRateLimit) {
		errs = append(errs, field.Invalid(path.Child("scoreRateLimit"), s.ScoreRateLimit, "must be a number and h, m or s, such as 1m"))
	}
	if s.Workload != nil {
		errs = append(errs, s.Workload.Validate(path.Child("workload"))...)
	}
	return errs
}

// Validate returns the errors in a workload, which is at a path of a placement. It does not read the template.
func (w *WorkloadSpec) Validate(path *field.Path) (errs field.ErrorList) {
	if (w.Template != nil) == (w.Ref != nil) {
		errs = append(errs, field.Required(path, "must have exactly one of template and ref"))
	}
	if w.Ref != nil {
		errs = append(errs, oneOf(path.Child("ref", "kind"), w.Ref.Kind, "PodTemplate", "Deployment", "ManifestWork")...)
		name := path.Child("ref", "name")
		errs = append(errs, validateName(name, w.Ref.Name)...)
		for _, problem := range content.IsPathSegmentName(w.Ref.Name) { // such a name cannot be requested
			errs = append(errs, field.Invalid(name, w.Ref.Name, problem))
		}
	}
	if n := w.Replicas; n != nil && (*n < 0 || *n > MaxReplicas) {
		errs = append(errs, field.Invalid(path.Child("replicas"), *n, "must be in [0, 1000000000]"))
	}
	return errs
}

// oneOf returns an error if the value is not one of the allowed values.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func (p *PrioritizerPolicy) validate(path *field.Path) (errs field.ErrorList) {
	if p.Mode != "" {
		errs = oneOf(path.Child("mode"), p.Mode, Additive, Exact)
	}
	for i := range p.Configurations {
		errs = append(errs, p.Configurations[i].validate(path.Child("configurations").Index(i))...)
	}
	return errs
}

func (c *PrioritizerConfig) validate(path *field.Path) (errs field.ErrorList) {
	switch {
	case c.Name == "" && c.ScoreCoordinate == nil:
		errs = append(errs, field.Required(path, "must have exactly one of name and scoreCoordinate"))
	case c.Name != "" && c.ScoreCoordinate != nil:
		errs = append(errs, field.Invalid(path.Child("name"), c.Name, "must have exactly one of name and scoreCoordinate"))
	case c.Name != "":
		errs = append(errs, oneOf(path.Child("name"), c.Name, prioritizers...)...)
	}
	if c.ScoreCoordinate != nil {
		errs = append(errs, c.ScoreCoordinate.validate(path.Child("scoreCoordinate"))...)
	}
	if w := c.Weight; w != nil && (*w < MinWeight || *w > MaxWeight) {
		errs = append(errs, field.Invalid(path.Child("weight"), *w, "must be in [-10, 10]"))
	}
	return errs
}

func (c *ScoreCoordinate) validate(path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("type"), c.Type, BuiltIn, AddOn)
	switch {
	case c.BuiltIn != "":
		errs = append(errs, oneOf(path.Child("builtIn"), c.BuiltIn, prioritizers...)...)
	case c.Type == BuiltIn:
		errs = append(errs, field.Required(path.Child("builtIn"), "must be given where type is BuiltIn"))
	}
	switch {
	case c.AddOn != nil:
		errs = append(errs, validateName(path.Child("addOn", "resourceName"), c.AddOn.ResourceName)...)
		errs = append(errs, validateName(path.Child("addOn", "scoreName"), c.AddOn.ScoreName)...)
	case c.Type == AddOn:
		errs = append(errs, field.Required(path.Child("addOn"), "must be given where type is AddOn, with resourceName and scoreName"))
	}
	return errs
}

func validateName(path *field.Path, name string) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "must have 1 to 253 characters")}
	case len(name) > maxNameLength:
		return field.ErrorList{field.TooLong(path, name, maxNameLength)}
	}
	return nil
}

func validateSpread(path *field.Path, constraints []clusterv1beta1.SpreadConstraintsTerm) (errs field.ErrorList) {
	if len(constraints) > MaxSpreadConstraints {
		errs = append(errs, field.TooMany(path, len(constraints), MaxSpreadConstraints))
	}
	for i := range constraints {
		c, at := &constraints[i], path.Index(i)
		errs = append(errs, validateKey(at.Child("topologyKey"), c.TopologyKey)...)
		errs = append(errs, oneOf(at.Child("topologyKeyType"), c.TopologyKeyType, clusterv1beta1.TopologyKeyTypeLabel,
			clusterv1beta1.TopologyKeyTypeClaim)...)
		if c.MaxSkew < 1 {
			errs = append(errs, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be at least 1"))
		}
		errs = append(errs, oneOf(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, clusterv1beta1.DoNotSchedule,
			clusterv1beta1.ScheduleAnyway)...)
	}
	return errs
}

func validateToleration(path *field.Path, t *clusterv1beta1.Toleration) (errs field.ErrorList) {
	switch {
	case t.Operator != "" && t.Operator != clusterv1beta1.TolerationOpEqual && t.Operator != clusterv1beta1.TolerationOpExists:
		errs = oneOf(path.Child("operator"), t.Operator, clusterv1beta1.TolerationOpEqual, clusterv1beta1.TolerationOpExists)
	case t.Key == "" && t.Operator != clusterv1beta1.TolerationOpExists:
		errs = append(errs, field.Invalid(path.Child("operator"), t.Operator, "must be Exists where key is empty"))
	}
	if t.Key != "" {
		errs = append(errs, validateKey(path.Child("key"), t.Key)...)
	}
	switch {
	case len(t.Value) > maxValueLength:
		errs = append(errs, field.TooLong(path.Child("value"), t.Value, maxValueLength))
	case t.Value != "" && t.Operator == clusterv1beta1.TolerationOpExists:
		errs = append(errs, field.Invalid(path.Child("value"), t.Value, "must be empty where operator is Exists"))
	}
	if t.Effect != "" {
		errs = append(errs, oneOf(path.Child("effect"), t.Effect, clusterv1.TaintEffectNoSelect, clusterv1.TaintEffectPreferNoSelect,
			clusterv1.TaintEffectNoSelectIfNew)...)
	}
	if s := t.TolerationSeconds; s != nil && (*s < 0 || *s > MaxTolerationSeconds) {
		errs = append(errs, field.Invalid(path.Child("tolerationSeconds"), *s, "must be in [0, 3153600000], the latter being 100 years"))
	}
	return errs
}

func validateKey(path *field.Path, key string) field.ErrorList {
	switch {
	case len(key) > maxKeyLength:
		return field.ErrorList{field.TooLong(path, key, maxKeyLength)}
	case !keyPattern.MatchString(key):
		return field.ErrorList{field.Invalid(path, key,
			"must be a key such as example.com/name: letters, digits, '-', '_' and '.', after a domain and '/' if there is one")}
	}
	return nil
}

func validateGroups(path *field.Path, g *clusterv1beta1.GroupStrategy) (errs field.ErrorList) {
	for i := range g.DecisionGroups {
		group, at := &g.DecisionGroups[i], path.Child("decisionGroups").Index(i)
		if !groupPattern.MatchString(group.GroupName) {
			errs = append(errs, field.Invalid(at.Child("groupName"), group.GroupName,
				"must have 2 to 63 letters, digits, '-', '_' and '.', the first and last of them a letter or digit"))
		}
		selector := &group.ClusterSelector
		errs = append(errs, validateSelectors(at.Child("groupClusterSelector"), &selector.LabelSelector, &selector.ClaimSelector)...)
	}
	if n := g.ClustersPerDecisionGroup; !isGroupSize(n) {
		errs = append(errs, field.Invalid(path.Child("clustersPerDecisionGroup"), n.String(),
			"must be a number of clusters, at least 1 and not in quotes, or a percentage from 1% to 100%"))
	}
	return errs
}

// isGroupSize reports whether a value is a size of groups. 0 is the default.
func isGroupSize(n intstr.IntOrString) bool {
	if n.Type == intstr.Int {
		return n.IntVal >= 0
	}
	number, percent := strings.CutSuffix(n.StrVal, "%")
	value, err := strconv.Atoi(number)
	return percent && err == nil && strconv.Itoa(value) == number && value >= 1 && value <= 100
}

// validateSelectors returns the errors in selectors of labels and claims. Claims are
// selected like labels: keys and values must be valid for labels.
func validateSelectors(path *field.Path, labels *metav1.LabelSelector, claims *clusterv1beta1.ClusterClaimSelector) field.ErrorList {
	at := path.Child("labelSelector")
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(labels.MatchLabels)) {
		errs = append(errs, validation.ValidateLabels(map[string]string{key: labels.MatchLabels[key]}, at.Child("matchLabels").Key(key))...)
	}
	errs = append(errs, validateRequirements(at.Child("matchExpressions"), labels.MatchExpressions)...)
	return append(errs, validateRequirements(path.Child("claimSelector", "matchExpressions"), claims.MatchExpressions)...)
}

func validateRequirements(path *field.Path, requirements []metav1.LabelSelectorRequirement) (errs field.ErrorList) {
	for i, r := range requirements {
		at := path.Index(i)
		wrong := oneOf(at.Child("operator"), r.Operator, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn,
			metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)
		if len(wrong) == 0 {
			wrong = validation.ValidateLabelSelectorRequirement(r, validation.LabelSelectorValidationOptions{}, at)
		}
		errs = append(errs, wrong...)
	}
	return errs
}
