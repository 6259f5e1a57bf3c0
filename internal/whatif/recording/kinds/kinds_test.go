package kinds

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	kubejson "sigs.k8s.io/json"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// mark is in each text of a marked object.
const mark = "acme"

// fillMarked sets all fields of a value, except the sources of volumes that are dropped with their volume. All texts have the mark.
func fillMarked(value reflect.Value, depth int) {
	switch into := value.Addr().Interface().(type) {
	case *resource.Quantity:
		*into = resource.MustParse("12345678901")
		return
	case *metav1.Time:
		*into = metav1.Unix(1795262370, 0)
		return
	case *metav1.FieldsV1:
		into.SetRawString(`{"f:spec":{"f:nodeName":{},"f:acme":{}}}`)
		return
	}
	if raw := value.Addr().MethodByName("UnmarshalJSON"); raw.IsValid() && value.Kind() == reflect.Struct {
		text := []byte(`{"kind":"Pod","acmeField":"acme-value","metadata":{"name":"acme-inner"}}`)
		_ = value.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(text)
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString("acme-text")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(7)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fillMarked(value.Elem(), depth)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fillMarked(value.Index(0), depth)
	case reflect.Map:
		key, item := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		key.SetString("acme-key")
		fillMarked(item, depth)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, item)
	case reflect.Struct:
		for i := 0; i < value.NumField() && depth < 12; i++ {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			if value.Field(i).CanSet() && (value.Type() != reflect.TypeFor[v1.VolumeSource]() || !slices.Contains(files, name)) {
				fillMarked(value.Field(i), depth+1)
			}
		}
	default:
	}
}

// checkFields reports the fields of an object that its trimmed form lacks without a reason.
func checkFields(t *testing.T, path, field string, object, trimmed any) {
	t.Helper()
	switch object := object.(type) {
	case []any:
		for i := range object {
			if kept, _ := trimmed.([]any); len(kept) == len(object) {
				checkFields(t, path+"[]", field+"[]", object[i], kept[i])
			} else {
				t.Errorf("%s has %d items, want %d", path, len(kept), len(object))
			}
		}
	case map[string]any:
		kept, _ := trimmed.(map[string]any)
		for name, value := range object {
			if found, ok := kept[name]; ok && name != "managedFields" {
				checkFields(t, path+"."+name, name, value, found)
			} else if !ok && !dropped.Has(name) && field != "annotations" {
				t.Errorf("%s.%s is dropped", path, name)
			}
		}
	}
}

// checkMarks reports texts of a redacted object with the mark, except those that redaction keeps.
func checkMarks(t *testing.T, path, field string, value any) {
	t.Helper()
	switch value := value.(type) {
	case string:
		isDriver := path == "CSIDriver.metadata.name" || path == "CSINode.spec.drivers[].name"
		if strings.Contains(value, mark) && !keptFields.Has(field) && !isDriver {
			t.Errorf("%s has %q", path, value)
		}
	case []any:
		for _, item := range value {
			checkMarks(t, path+"[]", field, item)
		}
	case map[string]any:
		for name, item := range value {
			if strings.Contains(name, mark) && (!known().amounts.Has(field) || field == "hard" || field == "used") {
				t.Errorf("%s has the key %q", path, name)
			}
			checkMarks(t, path+"."+name, name, item)
		}
	}
}

// TestNoMarkRemains checks for an object of each kind with all fields, in which each text is marked, and with unknown fields: a recording
// has all fields but those that are dropped for a reason; a redacted one has no mark but the names of drivers, resources and schedulers,
// and all names of fields.
func TestNoMarkRemains(t *testing.T) {
	for _, kind := range All {
		filled := reflect.New(kind.object)
		fillMarked(filled.Elem(), 0)
		raw, err := json.Marshal(filled.Interface())
		must.Succeed(t, err)
		var object map[string]any
		must.Succeed(t, json.Unmarshal(raw, &object))
		object["apiVersion"], object["kind"] = strings.TrimPrefix(kind.Group+"/"+kind.Versions[0], "/"), kind.Kind
		kept, err := kind.Trim(object)
		must.Succeed(t, err)
		var trimmed, redacted map[string]any
		must.Succeed(t, json.Unmarshal(kept.JSON, &trimmed))
		checkFields(t, kind.Kind, "", object, trimmed)

		redactor := NewRedactor([]byte("key"))
		out, err := redactor.Redact(kept)
		must.Succeed(t, err)
		unknown, err := kubejson.UnmarshalStrict(out.JSON, reflect.New(kind.object).Interface())
		if err != nil || len(unknown) > 0 && kind.Kind != "CapacityBuffer" {
			t.Errorf("%s is invalid: %v %v", kind, err, unknown)
		}
		object["acmeField"] = map[string]any{"acme": []any{"acme", map[string]any{"name": "acme"}}}
		object["spec"] = map[string]any{"acmeField": "acme", "metadata": object["metadata"]}
		kept, err = kind.Trim(object)
		must.Succeed(t, err)
		further, err := redactor.Redact(kept)
		must.Succeed(t, err)
		for _, o := range []Object{out, further} {
			must.Succeed(t, json.Unmarshal(o.JSON, &redacted))
			checkMarks(t, kind.Kind, "", redacted)
		}
	}
}

// TestFixedNodeIsKept checks that one entry of the managed fields of a pod remains, without others: that its creator set its node.
func TestFixedNodeIsKept(t *testing.T) {
	const created = `{"manager":"kubectl","fieldsV1":{"f:metadata":{},"f:spec":{"f:nodeName":{},"f:containers":{}}}}`
	const started = `{"manager":"kubelet","fieldsV1":{"f:status":{},"f:spec":{"f:containers":{}}}}`
	const fixed = `{"apiVersion":"v1","kind":"Pod","metadata":{"managedFields":[{"fieldsV1":{"f:spec":{"f:nodeName":{}}}}],"name":"a"}}`
	const free = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`
	for fields, want := range map[string]string{
		"[" + created + "," + started + "]": fixed, "[" + started + "]": free, `"none"`: free,
	} {
		var pod map[string]any
		must.Succeed(t, json.Unmarshal([]byte(`{"metadata":{"name":"a","managedFields":`+fields+`}}`), &pod))
		kept, err := Of("", "Pod").Trim(pod)
		if must.Succeed(t, err); string(kept.JSON) != want {
			t.Errorf("%s: %s, want %s", fields, kept.JSON, want)
		}
		redacted, err := NewRedactor([]byte("k")).Redact(kept)
		if must.Succeed(t, err); strings.Contains(string(redacted.JSON), "f:nodeName") != (want == fixed) {
			t.Errorf("%s: redacted %s", fields, redacted.JSON)
		}
	}
}

func TestPseudonyms(t *testing.T) {
	r := NewRedactor([]byte("k"))
	r.Prepare([]Object{
		{Of(ocmGroup, "ManagedCluster"), []byte(`{"metadata":{"name":"b"}}`)},
		{Of(ocmGroup, "ManagedCluster"), []byte(`{"metadata":{"name":"a"}}`)},
		{Of("", "Pod"), []byte(`{"metadata":{"name":"web-0"},"spec":{"volumes":[{"name":"logs","ephemeral":{}},{"name":"data"}]}}`)},
	})
	const zone, key = "topology.kubernetes.io/zone", "value-of-key"
	for _, tc := range []struct{ name, got, want string }{
		{"a label has the pseudonym of the name", r.text("kubernetes.io/hostname", "n1"), r.Name("n1")},
		{"the default namespace is kept", r.Name("default"), "default"},
		{"clusters keep their order", r.Name("b"), "managedcluster-000002"},
		{"a claim has the names of the pod and the volume", r.Name("web-0-logs"), r.Name("web-0") + "-" + r.Name("logs")},
		{"a standard key is kept", r.text(label, zone), zone},
		{"a custom role is replaced", strings.TrimRight(r.text(label, "node-role.kubernetes.io/pay"), lowerLetters), "name-"},
		{"a value that may be compared as a number is kept", r.text(label, "-7"), "-7"},
		{"a long number, such as of an account, is replaced", strings.TrimRight(r.text(label, "123456789012"), lowerLetters), "name-"},
		{"a long number is kept as an amount", r.text(amount, "123456789012"), "123456789012"},
		{"an empty value is kept", r.text(label, ""), ""},
		{"an image without a tag has the tag latest", r.text("image", "acme/web"), r.text("image", "acme/web:latest")},
		{"the port of a registry is not a tag", r.text("image", "acme:5000/web"), r.text("image", "acme:5000/web:latest")},
		{"the image of a node is compared as it is", r.text("names", "acme/web:2"), r.text("image", "acme/web:2")},
		{"the wildcard address is kept", r.text("hostIP", "0.0.0.0"), "0.0.0.0"},
		{"a volume of two zones has both", r.text(zone, "a__c"), r.text(zone, "a") + "__" + r.text(zone, "c")},
		{"a subrequest has both names", r.text("request", "gpu/large"), r.Name("gpu") + "/" + r.Name("large")},
		{"a ReplicaSet has the names of the Deployment and the hash", r.Name("web-6d4cf56db6"), r.Name("web") + "-" + r.Name("6d4cf56db6")},
		{"a Job has the name of the CronJob and the time", r.Name("report-29381760"), r.Name("report") + "-29381760"},
		{"references to other kinds hide them", strings.TrimRight(r.text("kind", "PaymentQueue"), lowerLetters), "name-"},
		{"references to kinds of Kubernetes are kept", r.text("kind", "ReplicaSet"), "ReplicaSet"},
		{"and their versions", r.text("apiVersion", "apps/v1"), "apps/v1"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, tc.got, tc.want)
		}
	}
	for _, text := range []string{"web", "Europe/Berlin", strings.Repeat("b", 63), strings.Repeat("x-", 20) + "6d4cf56db6", "2026"} {
		name := r.Name(text)
		if errs := append(validation.IsValidLabelValue(name), validation.IsQualifiedName(name)...); len(errs) > 0 {
			t.Errorf("%s has the invalid pseudonym %s: %q", text, name, errs)
		}
	}
}

const lowerLetters = "abcdefghijklmnopqrstuvwxyz234567"

// redactAs returns an object of a kind with pseudonyms.
func redactAs[T any](t must.TB, r *Redactor, kind string, object map[string]any) *T {
	raw, err := json.Marshal(object)
	must.Succeed(t, err)
	i := slices.IndexFunc(All, func(k *Kind) bool { return k.Kind == kind })
	redacted, err := r.Redact(Object{All[i], raw})
	must.Succeed(t, err)
	out := new(T)
	must.Succeed(t, json.Unmarshal(redacted.JSON, out))
	return out
}

// TestSelectorsMatchTheSame checks that a selector matches the redacted labels of a pod if it matches its labels, that a redacted node
// selector is the same for redacted nodes, and that the workload of a redacted pod is the redacted workload.
func TestSelectorsMatchTheSame(t *testing.T) {
	keys := []string{"app", "name", "selector", "data", "acme.com/slots", v1.LabelTopologyZone, "pod-template-hash", "version", "env"}
	values := []string{"", "web", "name", "7", "12", "a", "b", "6d4cf56db6", "1.2.3", "true", "web-6d4cf56db6", "123456789012"}
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.MapOf(rapid.SampledFrom(keys), rapid.SampledFrom(values)).Draw(t, "labels")
		match := rapid.MapOfN(rapid.SampledFrom(keys), rapid.SampledFrom(values), 0, 2).Draw(t, "match")
		expressions := []any{}
		for range rapid.IntRange(0, 2).Draw(t, "expressions") {
			operator := rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(t, "operator")
			expression := map[string]any{"key": rapid.SampledFrom(keys).Draw(t, "key"), "operator": operator}
			if strings.HasSuffix(operator, "In") {
				expression["values"] = rapid.SliceOfN(rapid.SampledFrom(values), 1, 3).Draw(t, "values")
			}
			expressions = append(expressions, expression)
		}
		selector := map[string]any{"matchLabels": match, "matchExpressions": expressions}
		budget := map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"selector": selector}}
		pod := map[string]any{"metadata": map[string]any{"name": "p", "labels": given, "ownerReferences": []any{
			map[string]any{"kind": "ReplicaSet", "name": "web-6d4cf56db6", "controller": true},
		}}}
		type labeled struct {
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct{ Selector *metav1.LabelSelector }
		}
		matches := func(r *Redactor) bool {
			of, err := metav1.LabelSelectorAsSelector(redactAs[labeled](t, r, "PodDisruptionBudget", budget).Spec.Selector)
			must.Succeed(t, err)
			return of.Matches(labels.Set(redactAs[v1.Pod](t, r, "Pod", pod).Labels))
		}
		redactor := NewRedactor([]byte("k"))
		if plain, redacted := matches(NewRedactor(nil)), matches(redactor); plain != redacted {
			t.Errorf("matches %v, redacted %v", plain, redacted)
		}
		workload := resources.WorkloadOf(redactAs[v1.Pod](t, NewRedactor(nil), "Pod", pod))
		if got := resources.WorkloadOf(redactAs[v1.Pod](t, redactor, "Pod", pod)); got.Name != redactor.Name(workload.Name) {
			t.Errorf("workload %s, want the pseudonym of %s", got.Name, workload.Name)
		}
		service := map[string]any{"spec": map[string]any{"selector": match}}
		if got := redactAs[v1.Service](t, redactor, "Service", service).Spec.Selector; len(match) > 0 && fmt.Sprint(got) !=
			fmt.Sprint(redactAs[labeled](t, redactor, "PodDisruptionBudget", budget).Spec.Selector.MatchLabels) {
			t.Errorf("the selector of a Service is %v", got)
		}
	})
}

// TestSlackSpecIsKept checks that a snapshot has all fields of the spec of a ResourceSlack, and a redacted one all but names.
func TestSlackSpecIsKept(t *testing.T) {
	spec := v1alpha1.ResourceSlackSpec{
		MinRate: "30%", Base: v1alpha1.BaseRequested, Granularity: new(int32(7)), CoverBiggestPod: new(true),
		Pool: v1alpha1.Pool{
			NodeSelector: map[string]string{"pool": "web"},
			Tolerations:  []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}},
			Devices:      []string{"nvidia.com/gpu"},
		},
		MaxPlaceholders: new(int32(50)),
		Mirrors: v1alpha1.Mirrors{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}},
			MaxPerWorkload:    new(int32(3)), MaxPerNamespace: new(int32(9)),
		},
		Backend: v1alpha1.BackendCapacityBuffer, PriorityClassName: "slack",
		Minimum: &v1alpha1.Amount{CPU: new(resource.MustParse("8")), Memory: new(resource.MustParse("32Gi")), Placeholders: new(int32(2))},
		Maximum: &v1alpha1.Amount{CPU: new(resource.MustParse("80"))},
		Schedules: []v1alpha1.Schedule{{
			Days: "Mon-Fri", From: "07:30", To: "19:00", TimeZone: "Europe/Berlin", MinRate: "20%",
			Minimum: &v1alpha1.Amount{CPU: new(resource.MustParse("16"))},
		}},
		Spread:               &v1alpha1.Spread{TopologyKey: "topology.kubernetes.io/zone", MinPerDomain: new(int32(1))},
		ProvisioningStrategy: "buffer.x-k8s.io/active-capacity",
	}
	for i, value := 0, reflect.ValueOf(spec); i < value.NumField(); i++ {
		if value.Field(i).IsZero() {
			t.Errorf("the test does not set %s", value.Type().Field(i).Name)
		}
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.ResourceSlack{Spec: spec})
	must.Succeed(t, err)
	kept, err := Of(plimsollGroup, v1alpha1.Kind).Trim(object)
	must.Succeed(t, err)
	redacted, err := NewRedactor([]byte("k")).Redact(kept)
	must.Succeed(t, err)
	for name, snapshot := range map[string]Object{"plain": kept, "redacted": redacted} {
		var got v1alpha1.ResourceSlack
		must.Succeed(t, json.Unmarshal(snapshot.JSON, &got))
		if name == "redacted" { // these are names
			got.Spec.Pool.NodeSelector, got.Spec.Pool.Tolerations = spec.Pool.NodeSelector, spec.Pool.Tolerations
			got.Spec.Mirrors.NamespaceSelector, got.Spec.PriorityClassName = spec.Mirrors.NamespaceSelector, spec.PriorityClassName
		}
		if diff := cmp.Diff(spec, got.Spec); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
