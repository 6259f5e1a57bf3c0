package report

import "strings"

// parameterWords has the words for the parameters of usage and limits.
var parameterWords = map[string]string{
	"mean": "mean % of the request", "cv": "coefficient of variation %", "max": "at most % times the request",
	"workload": "% of the variance between workloads", "between": "% of the variance between pods",
	"together": "% of the variance common to the pods of a workload", "hold": "changes every % min",
	"share": "the higher level for a share of % of the time", "period": "a period of % min",
}

// words describes a specification such as cpu=bursts:mean=0.7,hold=10;memory=beta:mean=0.5 in words. A specification
// with another form, or with parameters without words, is returned unchanged.
func words(spec string) string {
	var parts []string
	for part := range strings.SplitSeq(spec, ";") {
		resource, shape, ok := strings.Cut(part, "=")
		if !ok || strings.Contains(resource, ":") {
			return spec
		}
		kind, parameters, _ := strings.Cut(shape, ":")
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
		if resource == "cpu" {
			resource = "CPU"
		}
		parts = append(parts, resource+" "+strings.Join(described, ", "))
	}
	if len(parts) == 2 && strings.TrimPrefix(parts[0], "CPU ") == strings.TrimPrefix(parts[1], "memory ") {
		return "CPU and memory " + strings.TrimPrefix(parts[0], "CPU ")
	}
	return strings.Join(parts, "; ")
}

// limitWords describes the limits of pods in words.
func limitWords(spec string) string {
	if ratio, ok := strings.CutPrefix(spec, "ratio="); ok && !strings.ContainsAny(ratio, "=,") {
		return strings.ReplaceAll(ratio, "+", " or ") + " times the requests"
	}
	return spec
}
