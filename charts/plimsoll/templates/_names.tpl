{{/* The prefix of the names of all objects. */}}
{{- define "plimsoll.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/*
The argument of the templates below and of those in _component.tpl is a component: a dict of
root (the root context of the chart), name and values.
*/}}
{{- define "plimsoll.name" -}}
{{ include "plimsoll.fullname" .root }}-{{ .name }}
{{- end -}}

{{- define "plimsoll.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{/* Labels that all objects have. The argument is the root context. */}}
{{- define "plimsoll.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: plimsoll
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "plimsoll.looseLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{ include "plimsoll.commonLabels" . }}
{{- end -}}

{{- define "plimsoll.labels" -}}
{{ include "plimsoll.selector" . }}
{{ include "plimsoll.commonLabels" .root }}
{{- end -}}

{{/* The metadata of an object of a component: name, namespace and labels. */}}
{{- define "plimsoll.metadata" -}}
name: {{ include "plimsoll.name" . }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "plimsoll.labels" . | nindent 2 }}
{{- end -}}

{{- define "plimsoll.account" -}}
{{- .values.serviceAccount.name | default (include "plimsoll.name" .) -}}
{{- end -}}

{{- define "plimsoll.image" -}}
{{- $image := .values.image -}}
{{- $repository := list .root.Values.image.registry $image.repository | compact | join "/" -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ coalesce $image.tag .root.Values.image.tag .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}
