package kinds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Redactor replaces the names of objects and images and the values and keys of labels, except standard keys, by pseudonyms. A name has the
// same pseudonym everywhere, so that selectors, affinities, owners and topologies keep their meaning. Pseudonyms are derived from a key,
// with which names can be guessed and verified.
//
// Amounts, times, priorities, names of resources, schedulers and volume drivers, and the order of objects are kept. Values of labels that
// affinities compare as numbers, claims of ephemeral volumes and the order of clusters are recognized only in objects that were prepared or
// redacted before.
type Redactor struct{ p *pseudonyms }

// NewRedactor returns a redactor. The same key gives the same pseudonyms; it must be random and kept secret. Without a key, names are
// kept, and only the fields that a recording does not keep are dropped.
func NewRedactor(key []byte) *Redactor {
	if key == nil {
		return &Redactor{}
	}
	return &Redactor{&pseudonyms{key: key, numeric: map[string]bool{}, claims: map[string]string{}}}
}

// Prepare collects the information about all objects that is required to replace names. The redactor must have a key.
func (r *Redactor) Prepare(objects []Object) error {
	var clusters []string
	for i, o := range objects {
		var object struct {
			Metadata struct{ Name string }
			Spec     struct {
				Volumes []struct {
					Name      string
					Ephemeral *struct{}
				}
			}
		}
		var all any
		if err := json.Unmarshal(o.JSON, &all); err != nil {
			return fmt.Errorf("object %d: %w", i+1, err)
		}
		r.p.collectNumeric(all)
		kind := o.String()
		if kind != "pods" && kind != "managedclusters."+ocmGroup {
			continue
		}
		if err := json.Unmarshal(o.JSON, &object); err != nil {
			return fmt.Errorf("object %d: %w", i+1, err)
		}
		name := object.Metadata.Name
		if kind != "pods" {
			clusters = append(clusters, name)
		}
		for _, volume := range object.Spec.Volumes {
			if volume.Ephemeral != nil {
				r.p.claims[name+"-"+volume.Name] = r.p.name("pod", name) + "-" + r.p.name("volume", volume.Name)
			}
		}
	}
	r.p.numberClusters(clusters)
	return nil
}

// HasExpression reports whether an object has a CEL expression about clusters, in which names cannot be replaced.
func (o Object) HasExpression() bool {
	var value any
	return json.Unmarshal(o.JSON, &value) == nil && hasSelector(value, "celSelector")
}

// Name returns the pseudonym of the name of an object of a kind (in lower case).
func (r *Redactor) Name(kind, name string) string {
	if r.p == nil {
		return name
	}
	return r.p.name(kind, name)
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
	if r.p != nil {
		r.p.collectNumeric(value)
	}
	kept, _ := object.Kind.rule.rule(value, r.p)
	raw, err := json.Marshal(kept)
	return Object{object.Kind, raw}, err
}

// collectNumeric records the keys of labels and taints that are compared as numbers.
func (p *pseudonyms) collectNumeric(value any) {
	switch value := value.(type) {
	case string: // an annotation may be JSON
		var object map[string]any
		if strings.HasPrefix(value, "{") && json.Unmarshal([]byte(value), &object) == nil {
			p.collectNumeric(object)
		}
	case []any:
		for _, item := range value {
			p.collectNumeric(item)
		}
	case map[string]any:
		if operator := value["operator"]; operator == "Gt" || operator == "Lt" {
			if key, ok := value["key"].(string); ok {
				p.numeric[key] = true
			}
		}
		for _, field := range value {
			p.collectNumeric(field)
		}
	}
}

// hasSelector reports whether a value has, at any depth, a non-empty object in a field with the name.
func hasSelector(value any, name string) bool {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			if hasSelector(item, name) {
				return true
			}
		}
	case map[string]any:
		for field, value := range value {
			if selector, ok := value.(map[string]any); ok && field == name && len(selector) > 0 {
				return true
			}
			if hasSelector(value, name) {
				return true
			}
		}
	}
	return false
}
