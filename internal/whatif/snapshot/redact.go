package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// Redact returns the snapshot with pseudonyms in place of the names of objects and images and of the
// values and keys of labels, except standard keys. A name has the same pseudonym everywhere, so that
// selectors, affinities, owners and topologies keep their meaning. Pseudonyms are derived from the key,
// with which names can be guessed and verified: it must be random and must not be stored.
//
// Amounts, times, priorities, names of resources, schedulers and volume drivers, and the order of objects
// are kept.
func (s *Snapshot) Redact(key []byte) (*Snapshot, error) {
	p := &pseudonyms{key: key, numeric: map[string]bool{}, claims: map[string]string{}}
	if err := p.prepare(s); err != nil {
		return nil, err
	}
	missing := s.About.Missing
	var lists []List
	for _, list := range s.Lists {
		out := List{Kind: list.Kind}
		omitted := 0
		for i, item := range list.Items {
			var object map[string]any
			if err := json.Unmarshal(item, &object); err != nil {
				return nil, fmt.Errorf("%s, item %d: %w", list.File(), i+1, err)
			}
			if hasSelector(object, "celSelector") {
				omitted++
				continue
			}
			kept, _ := list.rule.rule(object, p)
			item, err := json.Marshal(kept)
			if err != nil {
				return nil, fmt.Errorf("%s, item %d: %w", list.File(), i+1, err)
			}
			out.Items = append(out.Items, item)
		}
		if omitted > 0 {
			why := fmt.Sprintf("%d have a CEL expression, in which names cannot be replaced", omitted)
			missing = append(slices.Clip(missing), Missing{list.String(), why})
		}
		lists = append(lists, out)
	}
	redacted := New(s.About.Time, s.About.Kubernetes, lists, missing)
	redacted.About.Redacted = true
	if s.Load != nil {
		reading := *s.Load
		reading.Nodes = make(map[string]load.Node, len(s.Load.Nodes))
		for name, node := range s.Load.Nodes {
			reading.Nodes[p.name("node", name)] = node
		}
		redacted.SetLoad(reading)
	}
	if s.Usage != nil {
		redacted.SetUsage(p.redactUsage(s.Usage))
	}
	return redacted, nil
}

// prepare collects the information about all objects that is required to replace names.
func (p *pseudonyms) prepare(s *Snapshot) error {
	var clusters []string
	for _, list := range s.Lists {
		for i, item := range list.Items {
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
			if err := json.Unmarshal(item, &all); err != nil {
				return fmt.Errorf("%s, item %d: %w", list.File(), i+1, err)
			}
			p.collectNumeric(all)
			switch list.Kind.Kind {
			case "ManagedCluster", "Pod":
				if err := json.Unmarshal(item, &object); err != nil {
					return fmt.Errorf("%s, item %d: %w", list.File(), i+1, err)
				}
			}
			name := object.Metadata.Name
			if list.Kind.Kind == "ManagedCluster" {
				clusters = append(clusters, name)
			}
			for _, volume := range object.Spec.Volumes {
				if volume.Ephemeral != nil {
					p.claims[name+"-"+volume.Name] = p.name("pod", name) + "-" + p.name("volume", volume.Name)
				}
			}
		}
	}
	p.numberClusters(clusters)
	return nil
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

// Redactor replaces names by pseudonyms in a sequence of objects, see Snapshot.Redact. Values of labels that affinities
// compare as numbers, and claims of ephemeral volumes, are recognized only in objects that come later.
type Redactor struct{ p *pseudonyms }

// NewRedactor returns a redactor. The same key gives the same pseudonyms; it must be random and kept secret. Without a key, names are
// kept, and only the fields that a snapshot does not keep are dropped.
func NewRedactor(key []byte) *Redactor {
	if key == nil {
		return &Redactor{}
	}
	return &Redactor{&pseudonyms{key: key, numeric: map[string]bool{}, claims: map[string]string{}}}
}

// Name returns the pseudonym of the name of an object of a kind (in lower case).
func (r *Redactor) Name(kind, name string) string {
	if r.p == nil {
		return name
	}
	return r.p.name(kind, name)
}

// Object sets into to an object of the kind with a resource name, such as "pods", with pseudonyms. Fields that a snapshot does not
// keep are dropped.
func (r *Redactor) Object(resource string, object, into any) error {
	i := slices.IndexFunc(Kinds, func(kind *Kind) bool { return kind.Resource == resource })
	if i < 0 {
		return fmt.Errorf("unknown resource %q", resource)
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var value map[string]any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	if r.p != nil {
		r.p.collectNumeric(value)
	}
	kept, _ := Kinds[i].rule.rule(value, r.p)
	if raw, err = json.Marshal(kept); err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
