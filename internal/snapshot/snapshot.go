// Package snapshot is a cluster in one file: what a scheduler looks at, what slack is
// planned by, what placements are decided by, and the load of the nodes, all of one
// instant. Of each object only those fields are there that one of them reads; above
// all no secret, no environment and no arguments of a container.
//
// A file is a gzipped tar archive:
//
//	snapshot.json           what it is: About
//	load.json               the load, as load watchers send it (package load/wire)
//	cluster/nodes.json      a v1 List for each kind that there is
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

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// What About says of itself. A later version may have more fields, but none that
// mean something else.
const (
	APIVersion = "snapshot.plimsoll.dev/v1"
	AboutKind  = "Snapshot"
)

// About says what a snapshot is.
type About struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is the instant that it is of: when reading it began.
	Time time.Time `json:"time"`
	// Kubernetes is the version of the API server, empty if that is not known.
	Kubernetes string `json:"kubernetes"`
	// Redacted: names are pseudonyms.
	Redacted bool `json:"redacted"`
	// Files that there are, with how many objects each has.
	Files []File `json:"files"`
	// Load says what load.json is, nil if there is none.
	Load *Load `json:"load"`
	// Missing is what could not be had, and why.
	Missing []Missing `json:"missing"`
}

// File says what is in a file of an archive.
type File struct {
	Name    string `json:"name"`
	Objects int    `json:"objects"`
}

// Load says where the load is from.
type Load struct {
	Source        string    `json:"source"`
	Time          time.Time `json:"time"`
	WindowSeconds float64   `json:"windowSeconds"`
	Nodes         int       `json:"nodes"`
}

// Missing is something that is not in a snapshot.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Snapshot is a cluster.
type Snapshot struct {
	About About
	// Lists of objects, in the order of Kinds; a kind that could not be read has none.
	Lists []List
	// Load of the nodes, nil if nothing is known.
	Load *load.Reading
}

// List is the objects of one kind, in JSON.
type List struct {
	*Kind
	Items []json.RawMessage
}

// New returns a snapshot of an instant, which says itself what it consists of.
func New(at time.Time, kubernetes string, lists []List, missing []Missing) *Snapshot {
	s := &Snapshot{
		About: About{
			APIVersion: APIVersion, Kind: AboutKind, Time: at.UTC().Truncate(time.Second), Kubernetes: kubernetes,
			Files: []File{}, Missing: append([]Missing{}, missing...),
		},
		Lists: lists,
	}
	for _, list := range lists {
		s.About.Files = append(s.About.Files, File{list.File(), len(list.Items)})
	}
	return s
}

// SetLoad adds the load.
func (s *Snapshot) SetLoad(reading load.Reading) {
	reading.Time = reading.Time.UTC().Truncate(time.Second)
	s.Load = &reading
	s.About.Load = &Load{Source: reading.Source, Time: reading.Time, WindowSeconds: reading.Window.Seconds(), Nodes: len(reading.Nodes)}
}

// Trim returns what a snapshot has of an object of this kind.
func (k *Kind) Trim(object map[string]any) (json.RawMessage, error) {
	kept, _ := k.rule.rule(object, nil)
	out := kept.(map[string]any)
	out["kind"] = k.Kind
	if _, ok := out["apiVersion"]; !ok {
		out["apiVersion"] = strings.TrimPrefix(k.Group+"/"+k.Versions[0], "/")
	}
	return json.Marshal(out)
}

// FromDocuments makes a snapshot of manifests: what it would have of a cluster with
// these objects, in their order. Kinds that snapshots do not have are passed over.
func FromDocuments(at time.Time, source manifest.Source) (*Snapshot, error) {
	lists := map[*Kind]*List{}
	err := manifest.EachObject(source, func(object map[string]any) error {
		name, _ := object["kind"].(string)
		kind := kindOf(name)
		if kind == nil {
			return nil
		}
		item, err := kind.Trim(object)
		if lists[kind] == nil {
			lists[kind] = &List{Kind: kind}
		}
		lists[kind].Items = append(lists[kind].Items, item)
		return err
	})
	if err != nil {
		return nil, err
	}
	var ordered []List
	for _, kind := range Kinds {
		if list := lists[kind]; list != nil || kind.Needed {
			if list == nil {
				list = &List{Kind: kind}
			}
			ordered = append(ordered, *list)
		}
	}
	return New(at, "", ordered, nil), nil
}

// Cluster returns what a scheduler looks at.
func (s *Snapshot) Cluster() (*manifest.Objects, error) {
	return manifest.ReadFrom(s.documents(FolderCluster))
}

// Hub returns what placements are decided by.
func (s *Snapshot) Hub() (*manifest.Hub, error) {
	return manifest.ReadHubFrom(s.documents(FolderHub))
}

// documents returns the objects of one folder in JSON, in their order.
func (s *Snapshot) documents(folder string) manifest.Source {
	return func(each func(where string, document []byte) error) error {
		for _, list := range s.Lists {
			if list.Folder != folder {
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

// List returns the objects of a kind by its name in the API, nil if there are none.
func (s *Snapshot) List(resource string) []json.RawMessage {
	i := slices.IndexFunc(s.Lists, func(list List) bool { return list.Resource == resource })
	if i < 0 {
		return nil
	}
	return s.Lists[i].Items
}

// encode writes the list as a v1 List, an object to a line.
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
