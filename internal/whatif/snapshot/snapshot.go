// Package snapshot stores a cluster in a file: the objects that affect scheduling, slack planning and
// placement, and the load of the nodes, at one time. Objects have only the fields that scheduling,
// slack planning and placement read, and thus no secrets, environment variables or arguments of
// containers.
//
// A file is a gzipped tar archive:
//
//	snapshot.json           the description of the snapshot (About)
//	load.json               the load in the format of load watchers (package load/wire)
//	usage.json              what pods use, if it was requested
//	cluster/nodes.json      a v1 List for each kind
//	cluster/pods.json       ...
//	slack/...  hub/...
//
// The same content gives the same bytes.
package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// APIVersion and AboutKind identify the format. Later releases may add fields but do not change the meaning
// of existing fields.
const (
	APIVersion = "snapshot.plimsoll.dev/v1"
	AboutKind  = "Snapshot"
)

// About describes a snapshot.
type About struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is the time at which reading the cluster started.
	Time time.Time `json:"time"`
	// Kubernetes is the version of the API server, empty if unknown.
	Kubernetes string `json:"kubernetes"`
	// Redacted is true if names are replaced by pseudonyms.
	Redacted bool `json:"redacted"`
	// Files lists the files of objects.
	Files []File `json:"files"`
	// Load describes load.json, nil if there is none.
	Load *Load `json:"load"`
	// Usage describes usage.json, nil if there is none.
	Usage *Usage `json:"usage,omitempty"`
	// Missing lists kinds and other data that could not be read.
	Missing []Missing `json:"missing"`
}

// File describes a file of objects.
type File struct {
	Name    string `json:"name"`
	Objects int    `json:"objects"`
}

// Load describes the load of the nodes.
type Load struct {
	Source        string    `json:"source"`
	Time          time.Time `json:"time"`
	WindowSeconds float64   `json:"windowSeconds"`
	Nodes         int       `json:"nodes"`
}

// Missing describes data that a snapshot lacks, and the reason.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Snapshot is a cluster at one time.
type Snapshot struct {
	About About
	// Lists has the objects by kind in the order of Kinds. Kinds that could not be read are absent.
	Lists []List
	// Load is the load of the nodes, nil if unknown.
	Load *load.Reading
	// Usage is the usage of pods, nil if unknown.
	Usage *load.PodReading
	// Ignored counts the objects of other kinds in the manifests that the snapshot is made of.
	Ignored manifest.Ignored
}

// List has the objects of a kind as JSON.
type List struct {
	*Kind
	Items []json.RawMessage
}

// New returns a snapshot with its description.
func New(now time.Time, kubernetes string, lists []List, missing []Missing) *Snapshot {
	s := &Snapshot{
		About: About{
			APIVersion: APIVersion, Kind: AboutKind, Time: now.UTC().Truncate(time.Second), Kubernetes: kubernetes,
			Files: []File{}, Missing: append([]Missing{}, missing...),
		},
		Lists: lists,
	}
	for _, list := range lists {
		s.About.Files = append(s.About.Files, File{list.File(), len(list.Items)})
	}
	return s
}

// SetLoad sets the load and its description.
func (s *Snapshot) SetLoad(reading load.Reading) {
	reading.Time = reading.Time.UTC().Truncate(time.Second)
	s.Load = &reading
	s.About.Load = &Load{Source: reading.Source, Time: reading.Time, WindowSeconds: reading.Window.Seconds(), Nodes: len(reading.Nodes)}
}

// Trim returns the fields of an object that a snapshot keeps.
func (k *Kind) Trim(object map[string]any) (json.RawMessage, error) {
	kept, _ := k.rule.rule(object, nil)
	out := kept.(map[string]any)
	out["kind"] = k.Kind
	if _, ok := out["apiVersion"]; !ok {
		out["apiVersion"] = strings.TrimPrefix(k.Group+"/"+k.Versions[0], "/")
	}
	return json.Marshal(out)
}

// FromDocuments returns a snapshot of the objects in manifests, in their order. Other kinds are
// counted in Ignored.
func FromDocuments(now time.Time, source manifest.Source) (*Snapshot, error) {
	items := map[*Kind][]json.RawMessage{}
	var ignored manifest.Ignored
	err := manifest.EachObject(source, func(group, name string, object map[string]any) error {
		kind := kindOf(group, name)
		if kind == nil {
			ignored.Add(schema.GroupKind{Group: group, Kind: name})
			return nil
		}
		item, err := kind.Trim(object)
		items[kind] = append(items[kind], item)
		return err
	})
	if err != nil {
		return nil, err
	}
	var lists []List
	for _, kind := range Kinds {
		if found, ok := items[kind]; ok || kind.Required {
			lists = append(lists, List{kind, found})
		}
	}
	s := New(now, "", lists, nil)
	s.Ignored = ignored
	return s, nil
}

// Cluster returns the objects that affect scheduling.
func (s *Snapshot) Cluster() (*manifest.Objects, error) {
	objects, err := manifest.ReadFrom(s.documents(FolderCluster))
	if err != nil {
		return nil, err
	}
	objects.Kubernetes = s.About.Kubernetes
	return objects, nil
}

// Hub returns the objects that affect placements, and the objects that workloads of placements can refer to. The snapshot may be
// required to have placements.
func (s *Snapshot) Hub(requirePlacements bool) (*manifest.Hub, error) {
	return manifest.ReadHubFrom(s.documents(FolderHub, "deployments", "podtemplates"), requirePlacements)
}

// documents returns the objects of a folder, and of further resources.
func (s *Snapshot) documents(folder string, further ...string) manifest.Source {
	return func(each func(where string, document []byte) error) error {
		for _, list := range s.Lists {
			if list.Folder != folder && !slices.Contains(further, list.Resource) {
				continue
			}
			for i, item := range list.Items {
				where := fmt.Sprintf("%s, item %d", list.File(), i+1)
				if err := each(where, item); err != nil {
					return fmt.Errorf("%s: %w", where, err)
				}
			}
		}
		return nil
	}
}

// List returns the objects of the kind with a resource name, such as "pods".
func (s *Snapshot) List(resource string) []json.RawMessage {
	i := slices.IndexFunc(s.Lists, func(list List) bool { return list.Resource == resource })
	if i < 0 {
		return nil
	}
	return s.Lists[i].Items
}

// IsOlderThan reports whether the snapshot was taken from a cluster by a version that did not know a kind.
func (s *Snapshot) IsOlderThan(group, kind string) bool {
	k := kindOf(group, kind)
	isMissing := func(m Missing) bool { return m.What == k.String() }
	isRead := func(list List) bool { return list.Kind == k }
	return s.About.Kubernetes != "" && !slices.ContainsFunc(s.Lists, isRead) && !slices.ContainsFunc(s.About.Missing, isMissing)
}

// encode returns the list as a v1 List with an object per line.
func (l *List) encode() []byte {
	var out bytes.Buffer
	out.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	for i, item := range l.Items {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		out.Write(item)
	}
	out.WriteString("\n]}\n")
	return out.Bytes()
}
