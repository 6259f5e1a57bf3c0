// Package collect reads a cluster into a snapshot. It lists, and does nothing else.
package collect

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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/snapshot"
)

// pageSize is how many objects are asked for at a time: few enough that no answer
// is a burden to the API server.
const pageSize = 500

// attempts to read a kind whose list goes stale while it is being read.
const attempts = 5

// Options say what is read.
type Options struct {
	// Folders of the archive to read for, all of them if nil.
	Folders []string
	// Progress, if there is one, is called with how many objects of a kind have been
	// read, and how many there are as far as that is known.
	Progress func(kind string, read, total int64)
	// Warn, if there is one, is told what could not be read.
	Warn func(string)
	// Now tells the time; time.Now if nil.
	Now func() time.Time
}

// Cluster is what was read.
type Cluster struct {
	*snapshot.Snapshot
	// Nodes with what sources of load want to know, which is not in the snapshot.
	Nodes []*v1.Node
}

// Read reads a cluster. Kinds that are not there or may not be listed are missing in
// the snapshot, which says so; without pods and nodes there is none.
func Read(ctx context.Context, config *rest.Config, options Options) (*Cluster, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	about, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return read(ctx, client, about, options)
}

func read(ctx context.Context, client dynamic.Interface, about discovery.ServerVersionInterface, options Options) (*Cluster, error) {
	c := &collector{client: client, Options: options}
	if c.Now == nil {
		c.Now = time.Now
	}
	at := c.Now()
	var lists []snapshot.List
	for _, kind := range snapshot.Kinds {
		if c.Folders != nil && !slices.Contains(c.Folders, kind.Folder) {
			continue
		}
		items, err := c.kind(ctx, kind)
		switch why := unavailable(err); {
		case err == nil:
			lists = append(lists, snapshot.List{Kind: kind, Items: items})
		case why == "" || kind.Needed:
			return nil, fmt.Errorf("reading %s: %w", kind, err)
		default:
			c.lacks(kind.String(), why, kind.Folder == snapshot.FolderCluster)
		}
	}
	version := ""
	if info, err := about.ServerVersion(); err != nil {
		c.lacks("the version of the API server", "it does not tell", true)
	} else {
		version = info.GitVersion
	}
	return &Cluster{snapshot.New(at, version, lists, c.missing), c.nodes}, ctx.Err()
}

type collector struct {
	Options
	client  dynamic.Interface
	missing []snapshot.Missing
	nodes   []*v1.Node
}

// lacks notes that something is missing. That an API server has no other kinds than
// Kubernetes' own is not worth a warning.
func (c *collector) lacks(what, why string, warn bool) {
	c.missing = append(c.missing, snapshot.Missing{What: what, Why: why})
	if c.Warn != nil && (warn || why != notServed) {
		c.Warn(fmt.Sprintf("%s: %s; the snapshot is without", what, why))
	}
}

const (
	notServed = "the API server does not have them"
	forbidden = "they may not be listed"
)

// unavailable returns why a kind is not to be had, empty for other errors.
func unavailable(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return notServed
	case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
		return forbidden
	}
	return ""
}

// kind reads all objects of a kind, in the first version that is served.
func (c *collector) kind(ctx context.Context, kind *snapshot.Kind) (items []json.RawMessage, err error) {
	for _, version := range kind.Versions {
		resource := schema.GroupVersionResource{Group: kind.Group, Version: version, Resource: kind.Resource}
		for range attempts {
			items, err = c.pages(ctx, kind, resource)
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

// item is an object and where it belongs.
type item struct {
	namespace, name string
	raw             json.RawMessage
}

// pages reads all pages of a list, in the order of namespaces and names.
func (c *collector) pages(ctx context.Context, kind *snapshot.Kind, resource schema.GroupVersionResource) ([]json.RawMessage, error) {
	var items []item
	var nodes []*v1.Node
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.client.Resource(resource).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			object := &page.Items[i]
			if kind.Kind == "Node" {
				node := &v1.Node{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, node); err != nil {
					return nil, fmt.Errorf("node %s: %w", object.GetName(), err)
				}
				nodes = append(nodes, node)
			}
			raw, err := kind.Trim(object.Object)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", object.GetNamespace(), object.GetName(), err)
			}
			items = append(items, item{object.GetNamespace(), object.GetName(), raw})
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
			return nil, errors.New("the API server has sent an empty page that is not the last")
		}
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name)) })
	raw := make([]json.RawMessage, len(items))
	for i := range items {
		raw[i] = items[i].raw
	}
	if kind.Kind == "Node" {
		c.nodes = nodes
	}
	return raw, nil
}
