package input

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recommend"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// SlackPolicy returns the ResourceSlack in a file. If path is empty, it returns the default policy, which
// mirrors the workloads of all namespaces. The rate in a flag, if it is not empty, replaces the rate of
// the policy.
func SlackPolicy(path, flag, rate string) (*v1alpha1.ResourceSlack, error) {
	policy := &v1alpha1.ResourceSlack{}
	if path == "" {
		policy.Name, policy.Spec.MinRate = "default", v1alpha1.DefaultRate
		policy.Spec.Mirrors.NamespaceSelector = &metav1.LabelSelector{}
	} else if err := readPolicy(path, policy); err != nil {
		return nil, err
	}
	if rate != "" {
		if _, err := v1alpha1.ParseRateFlag(flag, rate); err != nil {
			return nil, err
		}
		policy.Spec.MinRate = rate
	}
	policy.Spec.Default()
	if err := slack.Validate(policy); err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(path, "--"+flag), err)
	}
	return policy, nil
}

func readPolicy(path string, policy *v1alpha1.ResourceSlack) error {
	raw, err := readBounded(path, maxPolicyBytes)
	if err != nil {
		return err
	}
	var documents [][]byte
	err = manifest.Files([]string{"-"}, bytes.NewReader(append(raw, '\n')))(func(_ string, document []byte) error {
		documents = append(documents, document)
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case len(documents) != 1:
		return fmt.Errorf("%s: found %d objects: must be one %s", path, len(documents), v1alpha1.Kind)
	}
	var found metav1.TypeMeta // of another kind, all fields are unknown
	isObject := yaml.Unmarshal(documents[0], &found) == nil
	if isObject && (found.Kind != v1alpha1.Kind || found.APIVersion != v1alpha1.GroupVersion.String()) {
		return fmt.Errorf("%s: %w", path, resources.WrongKind(found, v1alpha1.Kind+" of "+v1alpha1.GroupVersion.String()))
	}
	if err := resources.DecodeStrict(documents[0], policy); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	metadata := &policy.ObjectMeta
	metadata.Namespace, metadata.GenerateName = "", "" // the API server ignores the namespace
	errs := apivalidation.ValidateObjectMeta(metadata, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if len(errs) > 0 {
		return fmt.Errorf("%s: %w", path, errs.ToAggregate())
	}
	return nil
}

// maxPolicyBytes is the size of the largest object that an API server stores, about.
const maxPolicyBytes = 1 << 20

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: found a directory: must be a file", path)
	}
	raw, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("%s: exceeds the limit of %d MiB", path, limit>>20)
	}
	return raw, err
}

// maxRecommendationBytes is the size of the largest recommendation.
const maxRecommendationBytes = 64 << 20

// Requests returns the requests of workloads in a file that plimsoll recommend -o json wrote.
func Requests(path string) ([]recording.WorkloadRequests, error) {
	raw, err := readBounded(path, maxRecommendationBytes)
	if err != nil {
		return nil, err
	}
	var found struct {
		metav1.TypeMeta `json:",inline"`
		Requests        []recording.WorkloadRequests `json:"requests"`
	}
	err = yaml.Unmarshal(raw, &found)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case found.Kind != recommend.Kind && (found.Kind != "" || len(found.Requests) == 0),
		found.APIVersion != recommend.APIVersion && found.APIVersion != "":
		return nil, fmt.Errorf(
			"%s: %w",
			path,
			resources.WrongKind(found.TypeMeta, recommend.Kind+" of "+recommend.APIVersion+", written by plimsoll recommend -o json"),
		)
	case len(found.Requests) == 0:
		return nil, fmt.Errorf("%s: the recommendation keeps all requests: there is nothing to compare", path)
	}
	for i, r := range found.Requests {
		if r.Kind == "" || r.Name == "" || r.CPU < 0 || r.Memory < 0 || r.CPU+r.Memory == 0 {
			return nil, fmt.Errorf("%s: requests[%d]: must have kind, name, and milliCPU or memory above 0", path, i)
		}
	}
	return found.Requests, nil
}
