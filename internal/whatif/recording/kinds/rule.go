package kinds

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// rule returns the kept part of a JSON value, with pseudonyms for names unless p is nil. It returns
// false if nothing is kept. Fields without a rule are dropped, so that a snapshot has no unknown
// fields.
type rule func(value any, p *pseudonyms) (any, bool)

// keep keeps a value unchanged.
func keep(value any, _ *pseudonyms) (any, bool) { return value, true }

// fields has the rules for the fields of an object.
type fields map[string]rule

// rule applies the rules to the fields of an object.
func (f fields) rule(value any, p *pseudonyms) (any, bool) {
	object, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	out := make(map[string]any, len(object))
	for name, value := range object {
		if rule := f[name]; rule != nil {
			if kept, ok := rule(value, p); ok {
				out[name] = kept
			}
		}
	}
	return out, true
}

// plus returns the rules with further rules.
func (f fields) plus(more fields) fields {
	out := maps.Clone(f)
	maps.Copy(out, more)
	return out
}

// objectOf returns the rule for an object with the fields.
func objectOf(f fields) rule { return f.rule }

// list returns the rule for a list whose items have a rule.
func list(item rule) rule {
	return func(value any, p *pseudonyms) (any, bool) {
		items, ok := value.([]any)
		if !ok {
			return nil, false
		}
		out := make([]any, 0, len(items))
		for _, value := range items {
			if kept, ok := item(value, p); ok {
				out = append(out, kept)
			}
		}
		return out, true
	}
}

// only returns a rule that keeps an object if the given rule keeps at least one of the fields.
func only(item rule, required ...string) rule {
	return func(value any, p *pseudonyms) (any, bool) {
		kept, ok := item(value, p)
		if !ok {
			return nil, false
		}
		for _, name := range required {
			if _, ok := kept.(map[string]any)[name]; ok {
				return kept, true
			}
		}
		return nil, false
	}
}

// text returns the rule for a string with a pseudonym.
func text(pseudonym func(*pseudonyms, string) string) rule {
	return func(value any, p *pseudonyms) (any, bool) {
		text, ok := value.(string)
		if !ok {
			return nil, false
		}
		if p == nil {
			return text, true
		}
		return pseudonym(p, text), true
	}
}

// inJSON returns the rule for a text that is a JSON object with a rule. Any other text is replaced by a text that is not valid either.
func inJSON(item rule) rule {
	return func(value any, p *pseudonyms) (any, bool) {
		text, _ := value.(string)
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			return "invalid", true
		}
		kept, ok := item(object, p)
		raw, _ := json.Marshal(kept) // of values from JSON
		return string(raw), ok
	}
}

// named returns the rule for the name of an object of a kind (in lower case).
func named(kind string) rule {
	return text(func(p *pseudonyms, name string) string { return p.name(kind, name) })
}

// labels is the rule for labels.
func labels(value any, p *pseudonyms) (any, bool) {
	object, ok := value.(map[string]any)
	if !ok || p == nil {
		return value, ok
	}
	out := make(map[string]any, len(object))
	for key, value := range object {
		text, _ := value.(string)
		out[p.labelKey(key)] = p.labelValue(key, text)
	}
	return out, true
}

// key is the rule for the key of a label or a taint.
var key = text((*pseudonyms).labelKey)

// keyed returns the rule for an object with a value, or values, of a label key, such as a taint or a requirement of a selector.
// keyField is the name of the field with the key.
func keyed(keyField string, f fields) rule {
	return func(value any, p *pseudonyms) (any, bool) {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		labelKey, _ := object[keyField].(string)
		labelValue := text(func(p *pseudonyms, value string) string { return p.labelValue(labelKey, value) })
		return fields{keyField: key, "value": labelValue, "values": list(labelValue)}.plus(f).rule(object, p)
	}
}

// requirement is the rule for a requirement of a selector: a key, an operator and values.
var requirement = keyed("key", fields{"operator": keep})

// knownKinds has the kinds of owners and scalable objects that kube-scheduler or Plimsoll read.
var knownKinds = []string{
	"Pod", "Node", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController",
	"CapacityBuffer", "ResourceSlack", "Placement",
}

// reference returns the rule for a reference to an object by its kind and name. It hides kinds that are not in knownKinds, and then the
// group in groupField, too.
func reference(groupField string, f fields) rule {
	return func(value any, p *pseudonyms) (any, bool) {
		kept, ok := fields{groupField: keep, "kind": keep, "name": keep}.plus(f).rule(value, p)
		if !ok || p == nil {
			return kept, ok
		}
		out := kept.(map[string]any)
		kind, _ := out["kind"].(string)
		name, _ := out["name"].(string)
		if !slices.Contains(knownKinds, kind) {
			kind = "Owner"
			out[groupField], out["kind"] = "redacted/v1", kind
		}
		out["name"] = p.name(strings.ToLower(kind), name)
		return out, true
	}
}
