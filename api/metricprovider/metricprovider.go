// Package metricprovider describes where the load of nodes is read from: the types of metric
// provider and the fields of their configuration. Plugin arguments and command-line flags have
// these fields, so that each is described once.
package metricprovider

import (
	"cmp"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of metric provider.
const (
	// Prometheus is a Prometheus server, or another server with its query API.
	Prometheus = "Prometheus"
	// MetricsServer is the metrics API of the cluster.
	MetricsServer = "KubernetesMetricsServer"
	// SignalFx is Splunk Observability Cloud.
	SignalFx = "SignalFx"
	// Service is a load-watcher service.
	Service = "Service"
	// File is a file in the wire format of load-watcher services.
	File = "File"
)

// Defaults of all that read load.
const (
	// DefaultPollInterval is the time between reads.
	DefaultPollInterval = 30 * time.Second
	// DefaultMaxAge is the age up to which load counts.
	DefaultMaxAge = 5 * time.Minute
)

// Types are the types of metric provider, in the order of the documentation.
var Types = []string{Prometheus, MetricsServer, SignalFx, Service, File}

// PodTypes are the types of metric provider that provide the usage of pods, in the order of the documentation.
var PodTypes = []string{Prometheus, MetricsServer}

// ExampleAddresses are valid addresses of the types that are HTTP servers.
var ExampleAddresses = map[string]string{
	Prometheus: "http://prometheus.monitoring:9090",
	SignalFx:   "https://api.us1.signalfx.com",
	Service:    "http://load-watcher.kube-system:2020",
}

// URLProblem returns what is wrong with the URL of an HTTP server, empty if it can be its address.
func URLProblem(u *url.URL, example string) string {
	_, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return "must be a URL like " + example
	case err != nil:
		return "must be a URL like " + example + ", with a port up to 65535"
	}
	return ""
}

// Config configures a metric provider. Fields that the type does not use must be empty; see Fields, which the tags describe.
type Config struct {
	// Type is one of Types.
	Type string `json:"type,omitempty" flag:"provider" types:"Prometheus,KubernetesMetricsServer,SignalFx,Service,File" pods:"Prometheus,KubernetesMetricsServer" usage:"where load is read from: Prometheus, KubernetesMetricsServer, SignalFx, Service, File"`
	// Address is the URL of the server, or the path of a File.
	Address string `json:"address,omitempty" flag:"address" types:"Prometheus,SignalFx,Service,File" pods:"Prometheus" usage:"URL of the server, or path of a File"`
	// Token is the bearer token. Prefer TokenFile, which keeps the token out of the configuration.
	Token string `json:"token,omitempty" types:"Prometheus,SignalFx,Service" pods:"Prometheus"`
	// TokenFile is a file with the token, read for every request.
	TokenFile string `json:"tokenFile,omitempty" flag:"token-file" types:"Prometheus,SignalFx,Service" pods:"Prometheus" usage:"file with the bearer token for the provider, read for every request"`
	// HeadersFile is a file with headers of requests, such as X-Scope-OrgID: team, one in a line, read for every request.
	HeadersFile string `json:"headersFile,omitempty" flag:"headers-file" types:"Prometheus" pods:"Prometheus" usage:"file with headers of requests to the provider, such as X-Scope-OrgID: team, one in a line"`
	// CAFile contains the certificate authorities that the server's certificate is verified with;
	// the authorities of the system if empty.
	CAFile string `json:"caFile,omitempty" flag:"ca-file" types:"Prometheus,SignalFx,Service" pods:"Prometheus" usage:"certificate authorities that verify the provider's certificate (default those of the system)"`
	// CertFile and KeyFile contain the client certificate and its key.
	CertFile string `json:"certFile,omitempty" flag:"cert-file" types:"Prometheus,SignalFx,Service" pods:"Prometheus" usage:"client certificate for the provider"`
	KeyFile  string `json:"keyFile,omitempty" flag:"key-file" types:"Prometheus,SignalFx,Service" pods:"Prometheus" usage:"key of the client certificate"`
	// InsecureSkipVerify disables the verification of the server's certificate.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty" flag:"insecure-skip-verify" types:"Prometheus,SignalFx,Service" pods:"Prometheus" usage:"do not verify the provider's certificate"`
	// Window is the time that means and standard deviations cover, at least 1s; 15m if 0.
	Window metav1.Duration `json:"window,omitzero" flag:"window" types:"Prometheus,KubernetesMetricsServer,SignalFx" usage:"time that means and standard deviations cover (default 15m)"`
	// Step is the time between two samples in the window; 1m if 0. SignalFx calls it resolution.
	Step metav1.Duration `json:"step,omitzero" flag:"step" types:"Prometheus,SignalFx" usage:"Prometheus, SignalFx: time between two samples in the window (default 1m)"`
	// RateWindow is the range of rate() for CPU samples, at least twice the scrape interval; 5m if 0.
	RateWindow metav1.Duration `json:"rateWindow,omitzero" flag:"rate-window" types:"Prometheus" pods:"Prometheus" usage:"Prometheus: range of rate() for CPU samples, at least twice the scrape interval (default 5m)"`
	// NodeLabel is the label with the node's name. If empty, the labels node, nodename and
	// kubernetes_node are tried, then the host of the label instance.
	NodeLabel string `json:"nodeLabel,omitempty" flag:"node-label" types:"Prometheus" usage:"Prometheus: label with the node's name (default node, nodename, kubernetes_node, or the host of instance)"`
	// Selector is added to every selector of the default queries, such as cluster="prod".
	Selector string `json:"selector,omitempty" flag:"selector" types:"Prometheus" pods:"Prometheus" usage:"Prometheus: added to every selector of the default queries, such as cluster=\"prod\""`
	// Queries replace the default queries.
	Queries Queries `json:"queries,omitzero"`
	// CPUMetric and MemoryMetric are metrics of utilization in percent of the node's capacity;
	// cpu.utilization and memory.utilization if empty.
	CPUMetric    string `json:"cpuMetric,omitempty" flag:"cpu-metric" types:"SignalFx" usage:"SignalFx: metric of CPU utilization in percent (default cpu.utilization)"`
	MemoryMetric string `json:"memoryMetric,omitempty" flag:"memory-metric" types:"SignalFx" usage:"SignalFx: metric of memory utilization in percent (default memory.utilization)"`
	// HostDimension is the dimension with the host's name; host if empty.
	HostDimension string `json:"hostDimension,omitempty" flag:"host-dimension" types:"SignalFx" usage:"SignalFx: dimension with the host's name (default host)"`
	// Filter contains further terms of the query, such as kubernetes_cluster:"prod". It is needed
	// where an organization contains hosts of several clusters.
	Filter string `json:"filter,omitempty" flag:"filter" types:"SignalFx" usage:"SignalFx: further terms of the query, such as kubernetes_cluster:\"prod\""`
}

// Queries are PromQL expressions. The default query replaces an empty one. Those of nodes return one sample per
// node, a fraction of the node's capacity in [0, 1].
type Queries struct {
	CPUAvg    string `json:"cpuAvg,omitempty" flag:"query-cpu-avg" types:"Prometheus" usage:"Prometheus: query for the mean of CPU utilization, one fraction of capacity per node"`
	CPUStd    string `json:"cpuStd,omitempty" flag:"query-cpu-std" types:"Prometheus" usage:"Prometheus: query for the standard deviation of CPU utilization"`
	MemoryAvg string `json:"memoryAvg,omitempty" flag:"query-memory-avg" types:"Prometheus" usage:"Prometheus: query for the mean of memory utilization"`
	MemoryStd string `json:"memoryStd,omitempty" flag:"query-memory-std" types:"Prometheus" usage:"Prometheus: query for the standard deviation of memory utilization"`
	// PodCPU and PodMemory return one sample per pod, with the labels namespace and pod: the cores in use, and the
	// bytes of the working set. They are used where the usage of pods is read.
	PodCPU    string `json:"podCPU,omitempty" pods:"Prometheus"`
	PodMemory string `json:"podMemory,omitempty" pods:"Prometheus"`
}

// Field describes one field of Config.
type Field struct {
	// Name is the name in JSON and YAML.
	Name string
	// Flag is the name of the command-line flag, empty if the field has none.
	Flag string
	// Usage is the help text of the flag.
	Usage string
	// Types are the types of metric provider that use the field to read the load of nodes.
	Types []string
	// PodTypes are the types that use it to read the usage of pods.
	PodTypes []string
	// Value returns the address of the field: a *string, *bool or *metav1.Duration.
	Value func(*Config) any
}

// Fields are the fields of Config, in the order of the documentation.
var Fields = fieldsOf(reflect.TypeFor[Config](), "", nil)

// fieldsOf returns the fields of a struct by their tags: flag and usage of the flag, types and pods, the types of metric provider that use
// the field. The names of the fields begin with a prefix, and index is where the struct is in Config.
func fieldsOf(in reflect.Type, prefix string, index []int) (fields []Field) {
	for i := range in.NumField() {
		f, at := in.Field(i), append(slices.Clone(index), i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Type == reflect.TypeFor[Queries]() {
			fields = append(fields, fieldsOf(f.Type, name+".", at)...)
			continue
		}
		split := func(tag string) []string {
			return strings.FieldsFunc(f.Tag.Get(tag), func(r rune) bool { return r == ',' })
		}
		fields = append(fields, Field{
			Name: prefix + name, Flag: f.Tag.Get("flag"), Usage: f.Tag.Get("usage"), Types: split("types"), PodTypes: split("pods"),
			Value: func(c *Config) any { return reflect.ValueOf(c).Elem().FieldByIndex(at).Addr().Interface() },
		})
	}
	return fields
}

// UnusedField returns the first field that is set and whose types do not include the type of the configuration, and whether there
// is one. types returns the Types or the PodTypes of a field.
func (c Config) UnusedField(types func(Field) []string) (Field, bool) {
	i := slices.IndexFunc(Fields, func(f Field) bool {
		return !slices.Contains(types(f), c.Type) && !reflect.ValueOf(f.Value(&c)).Elem().IsZero()
	})
	if i < 0 {
		return Field{}, false
	}
	return Fields[i], true
}
