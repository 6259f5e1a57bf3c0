package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// Redact returns the snapshot with pseudonyms in place of names: of namespaces,
// nodes, pods and all other objects, of images, and of labels' values and keys but
// for those keys that everybody has. A name has one pseudonym throughout, so that
// selectors, affinities, owners and topologies say what they said. Pseudonyms are made with the
// key; whoever has it can try names out, so that it is to be random, and forgotten.
//
// What stays: amounts, times, priorities, resource names, names of schedulers and of
// drivers of volumes, and the order of objects.
func (s *Snapshot) Redact(key []byte) (*Snapshot, error) {
	p := &pseudonyms{key: key, numeric: map[string]bool{}, claims: map[string]string{}}
	if err := p.lookAt(s); err != nil {
		return nil, err
	}
	missing := s.About.Missing
	var lists []List
	for _, list := range s.Lists {
		out := List{Kind: list.Kind}
		left := 0
		for i, item := range list.Items {
			var object map[string]any
			if err := json.Unmarshal(item, &object); err != nil {
				return nil, fmt.Errorf("%s, item %d: %w", list.File(), i+1, err)
			}
			if has(object, "celSelector") {
				left++
				continue
			}
			kept, _ := list.rule.rule(object, p)
			item, err := json.Marshal(kept)
			if err != nil {
				return nil, fmt.Errorf("%s, item %d: %w", list.File(), i+1, err)
			}
			out.Items = append(out.Items, item)
		}
		if left > 0 {
			missing = append(slices.Clip(missing), Missing{list.String(), fmt.Sprintf("%d with an expression in CEL, in which names cannot be replaced", left)})
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
	return redacted, nil
}

// lookAt finds what has to be known of all objects before the first name is
// replaced.
func (p *pseudonyms) lookAt(s *Snapshot) error {
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
			p.compared(all)
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
	p.number(clusters)
	return nil
}

// compared notes the keys of labels and taints that are compared as numbers.
func (p *pseudonyms) compared(value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			p.compared(item)
		}
	case map[string]any:
		if operator := value["operator"]; operator == "Gt" || operator == "Lt" {
			if key, ok := value["key"].(string); ok {
				p.numeric[key] = true
			}
		}
		for _, field := range value {
			p.compared(field)
		}
	}
}

// has reports whether there is a field of this name anywhere that says something.
func has(value any, name string) bool {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			if has(item, name) {
				return true
			}
		}
	case map[string]any:
		for field, value := range value {
			if selector, ok := value.(map[string]any); ok && field == name && len(selector) > 0 {
				return true
			}
			if has(value, name) {
				return true
			}
		}
	}
	return false
}
