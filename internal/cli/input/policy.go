package input

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// SlackPolicy returns the ResourceSlack in a file, or the default one if path is empty. A rate
// that is not empty replaces that of the policy.
func SlackPolicy(path, rate string) (*v1alpha1.ResourceSlack, error) {
	policy, source := &v1alpha1.ResourceSlack{}, cmp.Or(path, "--rate")
	if path == "" {
		policy.Name, policy.Spec.MinRate = "default", v1alpha1.DefaultRate
	} else if err := readPolicy(path, policy); err != nil {
		return nil, err
	}
	if rate != "" {
		policy.Spec.MinRate = rate
		if _, err := v1alpha1.ParseRate(rate); err != nil {
			return nil, fmt.Errorf("--rate: %w", err)
		}
	}
	policy.Spec.Default()
	if err := policy.Spec.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return policy, nil
}

func readPolicy(path string, policy *v1alpha1.ResourceSlack) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := decodeStrict(raw, policy); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if policy.Kind != v1alpha1.Kind || policy.APIVersion != v1alpha1.GroupVersion.String() {
		return fmt.Errorf("%s: found kind %q of apiVersion %q: must be %s of %s", path, policy.Kind, policy.APIVersion, v1alpha1.Kind,
			v1alpha1.GroupVersion)
	}
	if policy.Name == "" {
		return fmt.Errorf("%s: metadata.name: required", path)
	}
	return nil
}

// decodeStrict decodes one object. Unknown fields are errors.
func decodeStrict(raw []byte, into any) error {
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return err
	}
	unknown, err := kubejson.UnmarshalStrict(asJSON, into)
	return errors.Join(append(unknown, err)...)
}
