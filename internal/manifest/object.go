package manifest

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EachObject calls each for every object of any kind in documents, and for each item of Lists, with the
// group and the kind of the object.
func EachObject(source Source, each func(group, kind string, object map[string]any) error) error {
	return source(func(where string, document []byte) error {
		asJSON, err := toJSON(document)
		if err != nil {
			return err
		}
		return eachObject(where, asJSON, metav1.TypeMeta{}, 0, func(_ string, asJSON []byte, head *header) error {
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
	})
}
