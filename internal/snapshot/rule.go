package snapshot

import "maps"

// A rule says what is kept of a value in JSON, and which of the names in it become
// pseudonyms. What no rule speaks of is dropped, so that a field that nobody
// has thought of is never in a snapshot.
type rule func(value any, p *pseudonyms) (any, bool)

// keep keeps a value as it is.
func keep(value any, _ *pseudonyms) (any, bool) { return value, true }

// fields keeps the fields of an object that have a rule.
type fields map[string]rule

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

// plus returns the fields with more of them.
func (f fields) plus(more fields) fields {
	out := maps.Clone(f)
	maps.Copy(out, more)
	return out
}

// in is an object with these fields.
func in(f fields) rule { return f.rule }

// list keeps of a list what a rule keeps of its items.
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

// only keeps an object if a rule leaves one of these fields in it.
func only(of rule, needed ...string) rule {
	return func(value any, p *pseudonyms) (any, bool) {
		kept, ok := of(value, p)
		if !ok {
			return nil, false
		}
		for _, name := range needed {
			if _, there := kept.(map[string]any)[name]; there {
				return kept, true
			}
		}
		return nil, false
	}
}

// text keeps a text, as a pseudonym where there are any.
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

// named is the name of an object of a kind, in lower case.
func named(kind string) rule {
	return text(func(p *pseudonyms, name string) string { return p.name(kind, name) })
}

// labels is a map of labels.
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

// requirement is a term of a selector: a key, an operator and values.
func requirement(value any, p *pseudonyms) (any, bool) {
	object, ok := value.(map[string]any)
	if !ok || p == nil {
		return value, ok
	}
	key, _ := object["key"].(string)
	out := map[string]any{"key": p.labelKey(key)}
	if operator, ok := object["operator"]; ok {
		out["operator"] = operator
	}
	if values, ok := object["values"].([]any); ok {
		pseudonymous := make([]any, 0, len(values))
		for _, value := range values {
			text, _ := value.(string)
			pseudonymous = append(pseudonymous, p.labelValue(key, text))
		}
		out["values"] = pseudonymous
	}
	return out, true
}

// keyed is an object with a key and a value that belongs to it: a taint or a
// toleration.
func keyed(f fields) rule {
	return func(value any, p *pseudonyms) (any, bool) {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		kept, _ := f.plus(fields{"key": keep, "value": keep}).rule(object, p)
		if p == nil {
			return kept, true
		}
		out := kept.(map[string]any)
		key, _ := out["key"].(string)
		if _, ok := out["key"]; ok {
			out["key"] = p.labelKey(key)
		}
		if value, ok := out["value"].(string); ok {
			out["value"] = p.labelValue(key, value)
		}
		return out, true
	}
}
