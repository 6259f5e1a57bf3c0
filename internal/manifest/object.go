package manifest

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EachObject calls each for every object of any kind in documents, and for each item of Lists, with the
// group and the kind of the object.
func EachObject(source Source, each func(group, kind string, object map[string]any) error) error {
	return source(func(_ string, document []byte) error {
		asJSON, err := toJSON(document)
		if err != nil {
			return err
		}
		return eachObject(asJSON, metav1.TypeMeta{}, 0, each)
	})
}

// eachObject calls each for an object or the items of a list, which is in a number of other lists.
func eachObject(
	asJSON []byte, defaults metav1.TypeMeta, lists int, each func(group, kind string, object map[string]any) error,
) error {
	head, err := headerOf(asJSON, defaults)
	if err != nil {
		return err
	}
	if !head.isList() {
		var object map[string]any
		if err := json.Unmarshal(asJSON, &object); err != nil {
			return err
		}
		kind := head.groupVersionKind()
		object["apiVersion"], object["kind"] = head.APIVersion, head.Kind
		if err := each(kind.Group, kind.Kind, object); err != nil {
			return fmt.Errorf("%s: %w", &head, err)
		}
		return nil
	}
	if lists == maxNesting {
		return errNesting
	}
	for i, item := range head.Items {
		if err := eachObject(item, head.itemType(), lists+1, each); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return nil
}
