{{/*
The NetworkPolicy of a component. It allows ingress to the metrics port, and to the load port of the
load-watcher; egress to DNS, to the API server and to the load source.
*/}}
{{- define "plimsoll.network" }}
{{- $policy := .root.Values.networkPolicy }}
{{- if $policy.enabled }}
{{- $watcher := dict "podSelector" (dict "matchLabels" (include "plimsoll.selector" (dict "root" .root "name" "load-watcher") | fromYaml)) }}
{{- $scheduler := dict "podSelector" (dict "matchLabels" (include "plimsoll.selector" (dict "root" .root "name" "scheduler") | fromYaml)) }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "plimsoll.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "plimsoll.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
  - ports: [{port: {{ .metricsPort }}, protocol: TCP}]
    {{- with $policy.metricsFrom }}
    from:
      {{- toYaml . | nindent 6 }}
      {{- if eq $.name "load-watcher" }}
      {{- list $scheduler | toYaml | nindent 6 }}
      {{- end }}
    {{- end }}
  egress:
  - ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
  - ports:
      {{- range $policy.apiServerPorts }}
      - {port: {{ . }}, protocol: TCP}
      {{- end }}
    {{- with $policy.apiServerCIDRs }}
    to:
      {{- range . }}
      - ipBlock: {cidr: {{ . | quote }}}
      {{- end }}
    {{- end }}
  {{- if .usesWatcher }}
  - ports: [{port: http, protocol: TCP}]
    to:
      {{- list $watcher | toYaml | nindent 6 }}
  {{- end }}
  {{- if .usesLoad }}
  {{- with $policy.loadSource }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}
