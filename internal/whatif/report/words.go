package report

import "strings"

// parameterWords has the words for the parameters of usage and limits.
var parameterWords = map[string]string{
	"mean": "mean % of the request", "cv": "coefficient of variation %", "max": "at most % times the request",
	"workload": "% of the variance between workloads", "between": "% of the variance between pods",
	"together": "% of the variance common to the pods of a workload", "hold": "changes every % min",
	"share": "the higher level for a share of % of the time", "period": "a period of % min",
}

// usageWords describes a specification such as cpu=bursts:mean=0.7,hold=10;memory=beta:mean=0.5 in words, and without its parameters.
// A specification with another form, or with parameters without words, is returned unchanged.
func usageWords(spec string) (words, shapes string) {
	var parts, kinds []string
	for part := range strings.SplitSeq(spec, ";") {
		resource, shape, ok := strings.Cut(part, "=")
		if !ok || strings.Contains(resource, ":") {
			return spec, shorten(spec, 60)
		}
		kind, parameters, _ := strings.Cut(shape, ":")
		kinds = append(kinds, resource+" "+kind)
		described := []string{kind}
		for parameter := range strings.SplitSeq(parameters, ",") {
			name, value, _ := strings.Cut(parameter, "=")
			switch pattern, known := parameterWords[name]; {
			case parameter == "" || value == "0" && (name == "between" || name == "together" || name == "workload"):
			case known:
				described = append(described, strings.Replace(pattern, "%", value, 1))
			default:
				described = append(described, parameter)
			}
		}
		parts = append(parts, strings.Replace(resource, "cpu", "CPU", 1)+" "+strings.Join(described, ", "))
	}
	if cpu := strings.TrimPrefix(parts[0], "CPU "); len(parts) == 2 && parts[1] == "memory "+cpu {
		parts = []string{"CPU and memory " + cpu}
	}
	if cpu := strings.TrimPrefix(kinds[0], "cpu "); len(kinds) == 2 && kinds[1] == "memory "+cpu {
		kinds = []string{cpu}
	}
	return strings.Join(parts, "; "), strings.Join(kinds, ", ")
}

// limitWords describes the limits of pods in words.
func limitWords(spec string) string {
	if ratio, ok := strings.CutPrefix(spec, "ratio="); ok && !strings.ContainsAny(ratio, "=,") {
		return strings.ReplaceAll(ratio, "+", " or ") + " times the requests"
	}
	return spec
}
