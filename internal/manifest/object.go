package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// EachObject calls each for every object of any kind in documents, and for each item of Lists.
func EachObject(source Source, each func(object map[string]any) error) error {
	return source(func(_ string, document []byte) error {
		asJSON, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return err
		}
		var object map[string]any
		if err := json.Unmarshal(asJSON, &object); err != nil {
			return err
		}
		kind, _ := object["kind"].(string)
		items, list := object["items"].([]any)
		if !list || !strings.HasSuffix(kind, "List") {
			return each(object)
		}
		for i, item := range items {
			object, ok := item.(map[string]any)
			if !ok {
				return fmt.Errorf("item %d: found %T: must be an object", i+1, item)
			}
			if _, ok := object["kind"]; !ok {
				object["kind"] = strings.TrimSuffix(kind, "List")
			}
			if err := each(object); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return nil
	})
}
