package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// toJSON returns a document in YAML or JSON as JSON.
func toJSON(document []byte) ([]byte, error) {
	if trimmed := bytes.TrimSpace(document); isFlow(trimmed) && json.Valid(trimmed) {
		return trimmed, nil
	}
	return resources.YAMLToJSON(document)
}

// eachChecked calls a function for each object in documents, after the quantities of its document have been checked.
func eachChecked(source Source, each func(where string, asJSON []byte, head *header) error) error {
	return source(func(where string, document []byte) error {
		asJSON, err := toJSON(document)
		if err == nil {
			err = resources.CheckQuantities(asJSON)
		}
		if err != nil {
			return err
		}
		return eachObject(where, asJSON, metav1.TypeMeta{}, 0, each)
	})
}

// isFlow reports whether a document starts like JSON; it can still be YAML.
func isFlow(trimmed []byte) bool { return len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') }

// split returns the values of a document that consists of several JSON values, as kubectl accepts it, or
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

// header has the fields that all objects have in common.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// headerOf returns the header of an object. An item of a typed list may have no type: it then has the
// type in defaults.
func headerOf(asJSON []byte, defaults metav1.TypeMeta) (header, error) {
	var head header
	if err := json.Unmarshal(asJSON, &head); err != nil {
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

// eachObject calls a function for an object in JSON, or for each item of a list, with its place. An object without a type
// has the default type.
func eachObject(
	where string, asJSON []byte, defaultType metav1.TypeMeta, lists int, each func(where string, asJSON []byte, head *header) error,
) error {
	head, err := headerOf(asJSON, defaultType)
	switch {
	case err != nil:
		return err
	case !head.isList():
		return each(where, asJSON, &head)
	case lists == maxNesting:
		return errNesting
	}
	for i, item := range head.Items {
		if err := eachObject(fmt.Sprintf("%s, item %d", where, i+1), item, head.itemType(), lists+1, each); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return nil
}

// EachObject calls each for every object of any kind in documents, and for each item of Lists, with the
// group and the kind of the object.
func EachObject(source Source, each func(group, kind string, object map[string]any) error) error {
	return eachChecked(source, func(_ string, asJSON []byte, head *header) error {
		var object map[string]any
		if err := json.Unmarshal(asJSON, &object); err != nil {
			return err
		}
		object["apiVersion"], object["kind"] = head.APIVersion, head.Kind
		if err := each(head.groupVersionKind().Group, head.Kind, object); err != nil {
			return fmt.Errorf("%s: %w", head, err)
		}
		return nil
	})
}
