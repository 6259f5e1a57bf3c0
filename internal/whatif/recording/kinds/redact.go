package kinds

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Redactor replaces all texts of objects by pseudonyms, except numbers, amounts, times and words of Kubernetes. A text has the same
// pseudonym everywhere, so that selectors, affinities, owners and topologies keep their meaning. Pseudonyms are derived from a key, with
// which texts can be guessed and verified.
//
// Claims of ephemeral volumes and the order of clusters are recognized only if Prepare has seen the pods and the clusters.
type Redactor struct {
	// key is nil if texts are kept.
	key []byte
	// prepared has the pseudonyms of claims of ephemeral volumes, whose names Kubernetes derives from the names of the pod and the volume,
	// and of managed clusters, which keep the order of the names: it breaks ties between scores.
	prepared map[string]string
}

// NewRedactor returns a redactor. The same key gives the same pseudonyms; it must be random and kept secret. Without a key, texts are
// kept, and only the fields that a recording does not keep are dropped.
func NewRedactor(key []byte) *Redactor { return &Redactor{key, map[string]string{}} }

// Prepare finds the claims of ephemeral volumes and the clusters among all objects. The redactor must have a key.
func (r *Redactor) Prepare(objects []Object) {
	var clusters []string
	for _, o := range objects {
		var object struct {
			Metadata struct{ Name string }
			Spec     struct {
				Volumes []struct {
					Name      string
					Ephemeral *struct{}
				}
			}
		}
		isCluster := o.Kind != nil && o.Kind.Kind == "ManagedCluster"
		if o.Kind == nil || !isCluster && o.Kind.Kind != "Pod" || json.Unmarshal(o.JSON, &object) != nil {
			continue
		}
		name := object.Metadata.Name
		if isCluster {
			clusters = append(clusters, name)
		}
		for _, volume := range object.Spec.Volumes {
			if volume.Ephemeral != nil {
				r.prepared[name+"-"+volume.Name] = r.Name(name) + "-" + r.Name(volume.Name)
			}
		}
	}
	slices.Sort(clusters)
	for i, name := range clusters {
		r.prepared[name] = fmt.Sprintf("managedcluster-%06d", i+1)
	}
}

// HasExpression reports whether an object has a CEL expression about clusters, in which names cannot be replaced.
func (o Object) HasExpression() bool { return bytes.Contains(o.JSON, []byte(`"celSelector":{"`)) }

// Name returns the pseudonym of a name.
func (r *Redactor) Name(name string) string {
	if r.key == nil {
		return name
	}
	return r.text("", name)
}

// Object sets into to an object of the kind with a resource name, such as "pods", with pseudonyms. Fields that a recording does not
// keep are dropped.
func (r *Redactor) Object(resource string, object, into any) error {
	i := slices.IndexFunc(All, func(kind *Kind) bool { return kind.Resource == resource })
	if i < 0 {
		return fmt.Errorf("unknown resource %q", resource)
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	redacted, err := r.Redact(Object{All[i], raw})
	if err != nil {
		return err
	}
	return json.Unmarshal(redacted.JSON, into)
}

// Redact returns an object, whose kind must be known, with pseudonyms.
func (r *Redactor) Redact(object Object) (Object, error) {
	var value map[string]any
	if err := json.Unmarshal(object.JSON, &value); err != nil {
		return Object{}, err
	}
	out := object.Kind.trim("", value).(map[string]any)
	if r.key != nil {
		kept := out
		out = r.redact("", kept).(map[string]any)
		out["apiVersion"], out["kind"] = kept["apiVersion"], kept["kind"]
		if metadata, ok := out["metadata"].(map[string]any); ok && object.Kind.Kind == "CSIDriver" { // has the name of a driver
			metadata["name"] = kept["metadata"].(map[string]any)["name"]
		}
	}
	raw, err := json.Marshal(out)
	return Object{object.Kind, raw}, err
}

// Fields of texts that have no field: keys and values of labels, and amounts.
const (
	label  = "label"
	amount = "amount"
)

// redact returns a value in a field with pseudonyms.
func (r *Redactor) redact(field string, value any) any {
	switch value := value.(type) {
	case string:
		return r.text(field, value)
	case []any:
		out := make([]any, 0, len(value))
		for _, item := range value {
			object, _ := item.(map[string]any)
			expression, isSelector, _ := unstructured.NestedString(object, "cel", "expression")
			switch {
			case isSelector && driverOnly.MatchString(expression):
				out = append(out, map[string]any{"cel": map[string]any{"expression": expression}})
			case isText(item):
				out = append(out, r.redact(field, item))
			case !isSelector:
				out = append(out, r.redact(field+"[]", item))
			}
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(value))
		key, _ := value["key"].(string)
		for name, item := range value {
			out[r.fieldName(field, name, item)] = r.redact(innerField(field, key, name, item), item)
		}
		return out
	}
	return value
}

// innerField returns the field of the value of a name in an object, which has a key if it is a requirement, a toleration or a taint.
func innerField(field, key, name string, value any) string {
	switch {
	case (field == amount || known().amounts.Has(field)) && !known().amounts.Has(name) && name != "version":
		return amount
	case labelMaps.Has(field) && isText(value):
		return labelField(name)
	case key != "" && (name == "value" || name == "values"):
		return labelField(key)
	case (field == "target" || field == "current") && name == "value": // of a HorizontalPodAutoscaler
		return amount
	case field == "drivers[]" && name == "name": // of a CSINode
		return "driver"
	}
	return name
}

// isText reports whether a value is a text.
func isText(value any) bool {
	_, ok := value.(string)
	return ok
}

// labelField returns the field of the value of a label or an annotation: its key, unless the key could be the name of a field.
func labelField(key string) string {
	if strings.Contains(key, "/") {
		return key
	}
	return label
}

// fieldName returns the name of a field of an object, or the pseudonym of a key.
func (r *Redactor) fieldName(field, name string, value any) string {
	isKey := labelMaps.Has(field) && isText(value) || field == byCluster
	isOfQuota := field == "hard" || field == "used" // whose keys have names of storage classes and of CRDs
	if known().amounts.Has(field) && !isOfQuota || !isKey && known().all.Has(name) {
		return name
	}
	return r.text(label, name)
}

var (
	// driverOnly matches a CEL expression that selects the devices of one driver. Names in other expressions cannot be replaced, so such
	// expressions are dropped.
	driverOnly = regexp.MustCompile(`^\s*device\.driver\s*==\s*(?:"[a-z0-9.-]+"|'[a-z0-9.-]+')\s*$`)
	number     = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+|%)?$`)
	times      = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT[\d:.]{8,}(Z|[+-]\d\d:\d\d)|\d\d:\d\d|([\d.]+(h|m|s|ms))+)$`)
	// owned matches the names of a ReplicaSet of a Deployment and of a Job of a CronJob: the name of the owner, and a hash or a time.
	owned = regexp.MustCompile(`^(.+)-([bcdfghjklmnpqrstvwxz2456789]{6,10}|[0-9]{8})$`)
)

// separators has the separators of fields with several texts: REQUEST/SUBREQUEST of devices, and the zones of a volume.
var separators = map[string]string{
	"request": "/", "requests": "/", v1.LabelTopologyZone: "__", v1.LabelFailureDomainBetaZone: "__",
	v1.LabelTopologyRegion: "__", v1.LabelFailureDomainBetaRegion: "__",
}

// longestNumber is the length of the longest number that is kept where it may identify something.
const longestNumber = 9

// text returns the pseudonym of a text in a field.
func (r *Redactor) text(field, text string) string {
	if text == "" {
		return ""
	}
	switch field {
	case "image": // kube-scheduler adds the default tag before it compares it with the images of nodes.
		if strings.LastIndex(text, ":") <= strings.LastIndex(text, "/") {
			text += ":latest"
		}
		return r.hash(text) + ":redacted"
	case "names": // of an image of a node
		return r.hash(text) + ":redacted"
	}
	separator := separators[field]
	switch {
	case keptFields.Has(field), (field == amount || known().amounts.Has(field)) && number.MatchString(text):
		return text
	case separator != "" && strings.Contains(text, separator):
		parts := strings.Split(text, separator)
		for i := range parts {
			parts[i] = r.text("", parts[i])
		}
		return strings.Join(parts, separator)
	}
	if object := parse(text); object != nil { // an annotation
		return format(r.redact(field, object))
	}
	if parts := owned.FindStringSubmatch(text); parts != nil && r.prepared[text] == "" {
		return r.name(parts[1]) + "-" + r.name(parts[2])
	}
	return r.name(text)
}

// name returns the pseudonym of a text as a whole.
func (r *Redactor) name(text string) string {
	switch pseudonym := r.prepared[text]; {
	case pseudonym != "":
		return pseudonym
	case words().Has(text), strings.HasPrefix(text, plimsollGroup+"/"), times.MatchString(text),
		len(text) <= longestNumber && number.MatchString(text):
		return text
	}
	return r.hash(text)
}

// pseudonymBytes is the length of hashes. For a million texts, the probability of a collision is one in
// 30 million.
const pseudonymBytes = 8

// lower encodes hashes with characters that names of objects may have.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// hash returns a name that is derived from a text.
func (r *Redactor) hash(text string) string {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(text))
	return "name-" + lower.EncodeToString(mac.Sum(nil)[:pseudonymBytes])
}
