package record

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
)

// pageSize is the number of objects per request, small enough to limit the load of the API server.
const pageSize = 500

// readAttempts is the number of attempts to read a list that expires while it is being read.
const readAttempts = 5

// ReadOptions select the kinds to read.
type ReadOptions struct {
	// Areas are the areas of the kinds that are read, all if nil.
	Areas []string
	// Progress, if set, is called with the number of objects of a kind that were read and the total
	// as far as it is known.
	Progress func(kind string, read, total int64)
	// Warn, if set, is called with a message for each kind that could not be read.
	Warn func(string)
}

// Cluster is the result of reading a cluster.
type Cluster struct {
	*recording.Recording
	// Nodes are complete objects: load sources read fields that a snapshot does not have.
	Nodes []*v1.Node
}

// ReadCluster reads a cluster. The snapshot lists kinds that are not served or that may not be listed as missing.
// Reading fails without pods and nodes.
func ReadCluster(ctx context.Context, config *rest.Config, options ReadOptions) (*Cluster, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	version, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	c, now := &collector{client: client, ReadOptions: options}, time.Now()
	var objects []kinds.Object
	for _, kind := range kinds.All {
		if c.Areas != nil && !slices.Contains(c.Areas, kind.Area) {
			continue
		}
		items, err := c.kind(ctx, kind)
		switch why := unavailable(err); {
		case err == nil:
			objects = append(objects, items...)
			if kind.Kind == v1beta1.Kind {
				c.placements = items
			}
		case why == "" || kind.Required:
			return nil, fmt.Errorf("reading %s: %w", kind, err)
		case why == notServed && kind.Area == kinds.AreaRequests: // there are none
		default:
			c.addMissing(kind.String(), why, !kind.IsOptional())
		}
	}
	kubernetes := ""
	if info, err := version.ServerVersion(); err != nil {
		c.addMissing("the version of the API server", "it could not be read", true)
	} else {
		kubernetes = info.GitVersion
	}
	out := recording.NewSnapshot(now, kubernetes, objects, c.missing)
	out.About.HasAutoscalers = c.Areas == nil || slices.Contains(c.Areas, kinds.AreaRequests)
	return &Cluster{out, c.nodes}, ctx.Err()
}

// collector is the state of a call of ReadCluster.
type collector struct {
	ReadOptions
	client  dynamic.Interface
	missing []recording.Missing
	nodes   []*v1.Node
	// placements are read before ManifestWorks.
	placements []kinds.Object
}

// addMissing records that a kind or other data is missing. Unless warn is set, kinds that are not
// served cause no warning.
func (c *collector) addMissing(what, why string, warn bool) {
	c.missing = append(c.missing, recording.Missing{What: what, Why: why})
	if c.Warn != nil && (warn || why != notServed) {
		c.Warn(fmt.Sprintf("%s: %s; missing in the snapshot", what, why))
	}
}

// Reasons for missing kinds.
const (
	notServed = "not served by the API server"
	forbidden = "listing is forbidden"
)

// unavailable returns the reason if an error means that a kind is missing, else an empty string.
func unavailable(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return notServed
	case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
		return forbidden
	}
	return ""
}

// kind reads all objects of a kind in the first version that is served.
func (c *collector) kind(ctx context.Context, kind *kinds.Kind) (items []kinds.Object, err error) {
	for _, version := range kind.Versions {
		resource := schema.GroupVersionResource{Group: kind.Group, Version: version, Resource: kind.Resource}
		for range readAttempts {
			items, err = c.readAll(ctx, kind, c.client.Resource(resource))
			if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
				break
			}
		}
		if !apierrors.IsNotFound(err) {
			return items, err
		}
	}
	return nil, err
}

// readAll reads all objects of a kind. It reads only the ManifestWorks that placements refer to: the others are many, and have Secrets.
func (c *collector) readAll(ctx context.Context, kind *kinds.Kind, resource dynamic.NamespaceableResourceInterface) (
	items []kinds.Object, err error,
) {
	if kind.Kind != "ManifestWork" {
		return c.pages(ctx, kind, resource, "")
	}
	done := map[string]bool{}
	for _, object := range c.placements {
		var p v1beta1.Placement
		if json.Unmarshal(object.JSON, &p) != nil {
			continue // reading the hub of the snapshot returns the error
		}
		workload := p.Spec.Workload
		if text, given := p.Annotations[v1beta1.AnnotationWorkload]; given {
			workload = &v1beta1.WorkloadSpec{}
			_ = json.Unmarshal([]byte(text), workload) // the placement is misconfigured if it fails
		}
		if workload == nil || workload.Ref == nil || workload.Ref.Kind != kind.Kind || done[p.Namespace+"/"+workload.Ref.Name] {
			continue
		}
		done[p.Namespace+"/"+workload.Ref.Name] = true
		selector := fields.OneTermEqualSelector("metadata.name", workload.Ref.Name)
		found, err := c.pages(ctx, kind, resource.Namespace(p.Namespace), selector.String())
		if err != nil {
			return nil, err
		}
		items = append(items, found...)
	}
	return items, nil
}

// item is an object with its sort key.
type item struct {
	namespace, name string
	kept            kinds.Object
}

// pages reads all pages of a list with a field selector, which may be empty, and sorts the objects by namespace and name.
func (c *collector) pages(
	ctx context.Context, kind *kinds.Kind, resource dynamic.ResourceInterface, selector string,
) ([]kinds.Object, error) {
	var items []item
	var nodes []*v1.Node
	var invalid int
	var firstInvalid error
	options := metav1.ListOptions{Limit: pageSize, FieldSelector: selector}
	for {
		page, err := resource.List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			object := &page.Items[i]
			kept, err := kind.Trim(object.Object)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", object.GetNamespace(), object.GetName(), err)
			}
			if err := resources.CheckQuantities(kept.JSON); err != nil {
				invalid, firstInvalid = invalid+1, cmp.Or(firstInvalid, err)
				continue
			}
			if kind.Kind == "Node" {
				node := &v1.Node{}
				if err := resources.FromUnstructured(object.Object, node); err != nil {
					return nil, fmt.Errorf("node %s: %w", object.GetName(), err)
				}
				nodes = append(nodes, node)
			}
			items = append(items, item{object.GetNamespace(), object.GetName(), kept})
		}
		if c.Progress != nil {
			total := int64(len(items))
			if rest := page.GetRemainingItemCount(); rest != nil {
				total += *rest
			}
			c.Progress(kind.Resource, int64(len(items)), total)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
		if len(page.Items) == 0 {
			return nil, errors.New("the API server returned an empty page that is not the last")
		}
	}
	if invalid > 0 {
		c.addMissing(fmt.Sprintf("%d invalid %s", invalid, kind.Resource), firstInvalid.Error(), true)
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name)) })
	kept := make([]kinds.Object, len(items))
	for i := range items {
		kept[i] = items[i].kept
	}
	if kind.Kind == "Node" {
		c.nodes = nodes
	}
	return kept, nil
}
