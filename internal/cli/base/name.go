package base

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Resource is a type of object that arguments name. The type has the same names as in kubectl.
type Resource struct {
	// Singular is the name of one object, such as pod.
	Singular string
	// Others are the plural and the short names.
	Others []string
}

// The types of objects that arguments name.
var (
	Pod       = Resource{"pod", []string{"pods", "po"}}
	Node      = Resource{"node", []string{"nodes", "no"}}
	Placement = Resource{"placement", []string{"placements"}}
	Policy    = Resource{"resourceslack", []string{"resourceslacks", "slack"}}
)

// Has reports whether a word is a name of the type.
func (r Resource) Has(word string) bool { return word == r.Singular || slices.Contains(r.Others, word) }

// ParseName returns the object in an argument: NAME, TYPE/NAME as with kubectl, or NAMESPACE/NAME. The
// namespace is empty if neither the argument nor the flag --namespace sets it.
func (r Resource) ParseName(arg, namespaceFlag string) (types.NamespacedName, error) {
	parts := strings.Split(arg, "/")
	isTyped := len(parts) > 1 && r.Has(parts[0])
	if isTyped {
		parts = parts[1:]
	}
	key := types.NamespacedName{Namespace: namespaceFlag, Name: parts[len(parts)-1]}
	if len(parts) > 2 || slices.Contains(parts, "") {
		return key, fmt.Errorf("invalid argument %q: must be NAME, %s/NAME or NAMESPACE/NAME of a %s", arg, r.Singular, r.Singular)
	}
	if len(parts) == 1 {
		return key, nil
	}
	key.Namespace = parts[0]
	if namespaceFlag != "" && namespaceFlag != key.Namespace {
		return key, InvalidValue("namespace", namespaceFlag, fmt.Sprintf("%q as in the argument %s, or unset", key.Namespace, arg))
	}
	return key, nil
}

// ExactlyOne is the check for a command whose argument names one object of the type.
func (r Resource) ExactlyOne(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("found %d arguments: must be one, the name of a %s: %s NAME -n NAMESPACE", len(args), r.Singular, cmd.CommandPath())
}

// AddNamespaceFlag adds the flag --namespace to a command that reads an object of the type in a cluster.
func (r Resource) AddNamespaceFlag(cmd *cobra.Command, namespace *string, cluster ClusterAccess) {
	cmd.Flags().StringVarP(namespace, "namespace", "n", "", "namespace of the "+r.Singular+" (default that of the context, or default)")
	CheckFlag(cmd, "namespace", "the name of a namespace", IsNamespace)
	namespaces := v1.SchemeGroupVersion.WithResource("namespaces")
	_ = cmd.RegisterFlagCompletionFunc("namespace", CompleteNames(cluster, namespaces, nil))
}

// ClusterAccess is the flags that select a cluster; see kube.Access.
type ClusterAccess interface {
	Config() (*rest.Config, error)
	Namespace() (string, error)
	Explain(err error) error
}

// CompleteNames completes arguments with the names of objects of a cluster, none if they cannot be read: of cluster-scoped objects if
// namespace is nil, else one argument with the objects in the namespace, by default the namespace of the context.
func CompleteNames(cluster ClusterAccess, resource schema.GroupVersionResource, namespace *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (names []string, directive cobra.ShellCompDirective) {
		config, err := cluster.Config()
		if err != nil || namespace != nil && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		objects := metadata.ResourceInterface(client.Resource(resource))
		if namespace != nil {
			fromContext, _ := cluster.Namespace()
			objects = client.Resource(resource).Namespace(cmp.Or(*namespace, fromContext))
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
		defer cancel()
		if list, err := objects.List(ctx, metav1.ListOptions{Limit: 500}); err == nil {
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
