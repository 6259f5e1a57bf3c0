package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// toJSON returns a document in YAML or JSON as JSON.
func toJSON(document []byte) ([]byte, error) {
	if trimmed := bytes.TrimSpace(document); isFlow(trimmed) && json.Valid(trimmed) {
		return trimmed, nil
	}
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err == nil {
		return asJSON, nil
	}
	if line := action.Find(document); line != nil {
		return nil, templateError(line)
	}
	return nil, err
}

// isFlow reports whether a document starts like JSON. It can be YAML, too.
func isFlow(trimmed []byte) bool { return len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') }

// split returns the values of a document that consists of several JSON values, as kubectl accepts it, and
// else the document.
func split(document []byte) [][]byte {
	trimmed := bytes.TrimSpace(document)
	if !isFlow(trimmed) || json.Valid(trimmed) {
		return [][]byte{document}
	}
	var values [][]byte
	for decoder := json.NewDecoder(bytes.NewReader(trimmed)); ; {
		var value json.RawMessage
		switch err := decoder.Decode(&value); {
		case err == nil:
			values = append(values, value)
		case len(values) > 0 && !decoder.More():
			return values
		default:
			return [][]byte{document} // YAML
		}
	}
}

// action matches an action of a Go template, as in the templates of Helm charts.
var action = regexp.MustCompile(`\{\{[^\n]*\}\}`)

// templateError returns the error for a document with an action.
func templateError(found []byte) error {
	const length = 60
	text := string(found[:min(len(found), length)])
	return fmt.Errorf("looks like a Helm template (found %s): render it first, as with helm template NAME CHART, and read the output", text)
}

// header is what all objects have in common.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// headerOf returns the header of an object. The type of an item of a typed list may be absent; it is then
// that of the defaults.
func headerOf(asJSON []byte, defaults metav1.TypeMeta) (header, error) {
	var head header
	if err := json.Unmarshal(asJSON, &head); err != nil {
		if typeError, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			if typeError.Field == "" {
				return head, fmt.Errorf("found a value of type %s: must be an object with apiVersion and kind", typeError.Value)
			}
			return head, fmt.Errorf("%s: found a value of type %s: must be a %s", typeError.Field, typeError.Value, typeError.Type)
		}
		return head, err
	}
	if head.Kind == "" && head.APIVersion == "" {
		head.TypeMeta = defaults
	}
	switch {
	case head.Kind == "":
		return head, errors.New("kind: required: must be the kind of an object, such as Node or Pod")
	case head.APIVersion == "":
		return head, fmt.Errorf("apiVersion: required: must be the version of %s, such as v1", head.Kind)
	}
	for _, text := range []string{head.Kind, head.Metadata.Name, head.Metadata.Namespace} {
		if found := action.FindString(text); found != "" {
			return head, templateError([]byte(found))
		}
	}
	return head, nil
}

// isList reports whether the object is a List or a typed list such as PodList.
func (h *header) isList() bool { return strings.HasSuffix(h.Kind, "List") }

// itemType returns the type of the items of a list that have none, which is empty for a v1 List.
func (h *header) itemType() metav1.TypeMeta {
	if h.Kind == "List" {
		return metav1.TypeMeta{}
	}
	return metav1.TypeMeta{Kind: strings.TrimSuffix(h.Kind, "List"), APIVersion: h.APIVersion}
}

// groupVersionKind returns the type of the object.
func (h *header) groupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(h.APIVersion, h.Kind)
}

// String returns KIND NAMESPACE/NAME.
func (h *header) String() string {
	name := h.Metadata.Name
	if h.Metadata.Namespace != "" {
		name = h.Metadata.Namespace + "/" + name
	}
	return strings.TrimSpace(h.Kind + " " + name)
}

// nesting is the depth of lists within lists.
type nesting int

// read calls a function for each item of a list, with its place and the type that it has if it states none.
func (n *nesting) read(where string, head *header, item func(where string, asJSON []byte, defaultType metav1.TypeMeta) error) error {
	*n++
	defer func() { *n-- }()
	if *n > maxNesting {
		return errNesting
	}
	for i, asJSON := range head.Items {
		if err := item(fmt.Sprintf("%s, item %d", where, i+1), asJSON, head.itemType()); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return nil
}
