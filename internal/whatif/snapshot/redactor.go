package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"
)

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
