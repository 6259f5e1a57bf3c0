{{/* The name that all names of objects begin with. */}}
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
The templates below, and those of _component.tpl, are about one component: a dict of
root (the chart's top), name and values.
*/}}
{{- define "plimsoll.name" -}}
{{ include "plimsoll.fullname" .root }}-{{ .name }}
{{- end -}}

{{- define "plimsoll.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{/* Labels of an object that belongs to no component, whose argument is the root. */}}
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

{{/* Name, namespace and labels: what objects of a component have under metadata. */}}
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
