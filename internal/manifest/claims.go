package manifest

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// GenerateClaims creates the resource claims of pods that refer to a template, as the controller of resource claims does,
// unless the objects have them. It sets the names of the claims in the status of the pods, and returns the objects with
// the new claims. A pod whose template is missing remains without a claim, and cannot be scheduled.
func GenerateClaims(pods []*v1.Pod, objects []runtime.Object) []runtime.Object {
	g := claimGenerator{
		claims: map[string]*resourcev1.ResourceClaim{}, templates: map[string]*resourcev1.ResourceClaimTemplate{},
		owned: map[types.UID][]*resourcev1.ResourceClaim{},
	}
	for _, object := range objects {
		switch object := object.(type) {
		case *resourcev1.ResourceClaim:
			g.claims[object.Namespace+"/"+object.Name] = object
			if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
				g.owned[owner.UID] = append(g.owned[owner.UID], object)
			}
		case *resourcev1.ResourceClaimTemplate:
			g.templates[object.Namespace+"/"+object.Name] = object
		}
	}
	for _, pod := range pods {
		g.adopt(pod)
		for i := range pod.Spec.ResourceClaims {
			if reference := &pod.Spec.ResourceClaims[i]; reference.ResourceClaimTemplateName != nil && !g.has(pod, reference) {
				g.generate(pod, reference)
			}
		}
	}
	return append(slices.Clip(objects), g.generated...)
}

// claimGenerator has the claims and templates by namespace and name, and the claims of each pod.
type claimGenerator struct {
	owned     map[types.UID][]*resourcev1.ResourceClaim
	claims    map[string]*resourcev1.ResourceClaim
	templates map[string]*resourcev1.ResourceClaimTemplate
	generated []runtime.Object
}

// adopt sets the names of the claims that a pod owns in its status, if it has none: a recording has no status of pods. The
// controller names claims after the pod and the reference; pseudonyms are in the order of the references.
func (g *claimGenerator) adopt(pod *v1.Pod) {
	owned := g.owned[pod.UID]
	if len(owned) == 0 || len(pod.Status.ResourceClaimStatuses) > 0 {
		return
	}
	references := slices.DeleteFunc(slices.Clone(pod.Spec.ResourceClaims),
		func(r v1.PodResourceClaim) bool { return r.ResourceClaimTemplateName == nil })
	for i, reference := range references {
		named := slices.IndexFunc(owned, func(c *resourcev1.ResourceClaim) bool {
			return strings.HasPrefix(c.Name, pod.Name+"-"+reference.Name)
		})
		if named < 0 && len(owned) == len(references) {
			named = i
		}
		if named >= 0 {
			status := v1.PodResourceClaimStatus{Name: reference.Name, ResourceClaimName: &owned[named].Name}
			pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, status)
		}
	}
}

// has reports whether the claim of a reference of a pod exists and belongs to the pod, or the template needs no claim.
func (g *claimGenerator) has(pod *v1.Pod, reference *v1.PodResourceClaim) bool {
	name, _, err := resourceclaim.Name(pod, reference)
	if err != nil || name == nil {
		return err == nil
	}
	claim := g.claims[pod.Namespace+"/"+*name]
	return claim != nil && metav1.IsControlledBy(claim, pod)
}

// generate creates a claim from a template.
func (g *claimGenerator) generate(pod *v1.Pod, reference *v1.PodResourceClaim) {
	template := g.templates[pod.Namespace+"/"+*reference.ResourceClaimTemplateName]
	if template == nil {
		return
	}
	name := pod.Name + "-" + reference.Name
	for i := 2; g.claims[pod.Namespace+"/"+name] != nil; i++ {
		name = fmt.Sprintf("%s-%s-%d", pod.Name, reference.Name, i)
	}
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: name, UID: types.UID("claim " + pod.Namespace + "/" + name),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true),
			}},
		},
		Spec: *template.Spec.Spec.DeepCopy(),
	}
	g.claims[pod.Namespace+"/"+name] = claim
	g.generated = append(g.generated, claim)
	statuses := slices.DeleteFunc(slices.Clone(pod.Status.ResourceClaimStatuses),
		func(s v1.PodResourceClaimStatus) bool { return s.Name == reference.Name })
	pod.Status.ResourceClaimStatuses = append(statuses, v1.PodResourceClaimStatus{Name: reference.Name, ResourceClaimName: &name})
}
