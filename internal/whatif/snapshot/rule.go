package snapshot

import "maps"

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

// in returns the rule for an object with the fields.
func in(f fields) rule { return f.rule }

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

// requirement is the rule for a requirement of a selector: a key, an operator and values.
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

// keyed returns the rule for an object with a key and a value, such as a taint or a toleration.
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
