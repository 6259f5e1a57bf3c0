{{/*
The rules of one kind (ClusterRole, or Role for the namespace of the release) from the files
generated/rbac/PART.yaml of some parts. The files are generated from kubebuilder markers in the code.
*/}}
{{- define "plimsoll.rules" -}}
{{- $rules := list -}}
{{- range $part := .parts -}}
{{- range $.root.Files.Get (printf "generated/rbac/%s.yaml" $part) | splitList "---\n" -}}
{{- $document := fromYaml . -}}
{{- if eq ($document.kind | default "") $.kind -}}
{{- $rules = concat $rules $document.rules -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $rules }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/*
The roles and bindings of a component: the rules of its parts in the cluster and in the namespace of
the release, access to its lease (if it has one), and the creation of events.
*/}}
{{- define "plimsoll.rights" }}
{{- $subject := dict "kind" "ServiceAccount" "name" (include "plimsoll.account" .) "namespace" .root.Release.Namespace }}
{{- with include "plimsoll.rules" (dict "root" .root "parts" .parts "kind" "ClusterRole") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "plimsoll.name" $ }}
  labels:
    {{- include "plimsoll.labels" $ | nindent 4 }}
rules:
  {{- nindent 2 . }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "plimsoll.name" $ }}
  labels:
    {{- include "plimsoll.labels" $ | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ include "plimsoll.name" $ }}}
subjects:
{{ list $subject | toYaml }}
{{- end }}
{{- $here := include "plimsoll.rules" (dict "root" .root "parts" (without .parts "placeholder-pods") "kind" "Role") }}
{{- if or .lease $here }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  {{- include "plimsoll.metadata" . | nindent 2 }}
rules:
  {{- with $here }}
  {{- nindent 2 . }}
  {{- end }}
  {{- with .lease }}
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [{{ . }}]
    verbs: [get, update]
  # Events of the leader election.
  - apiGroups: [events.k8s.io, ""]
    resources: [events]
    verbs: [create, patch]
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "plimsoll.metadata" . | nindent 2 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ include "plimsoll.name" . }}}
subjects:
{{ list $subject | toYaml }}
{{- end }}
{{- with .lease }}
---
# Created here so that it is deleted with the release. The leader sets its spec.
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: {{ . }}
  namespace: {{ $.root.Release.Namespace }}
  labels:
    {{- include "plimsoll.labels" $ | nindent 4 }}
{{- end }}
{{- end }}

{{/*
The role and binding of the controller in the namespace of placeholder pods, which has nothing else in it:
whoever may create Deployments reaches every Secret and service account of the namespace.
*/}}
{{- define "plimsoll.placeholderRights" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ include "plimsoll.name" . }}-placeholders
  namespace: {{ .namespace }}
  labels:
    {{- include "plimsoll.labels" . | nindent 4 }}
rules:
  {{- include "plimsoll.rules" (dict "root" .root "parts" (list "placeholder-pods") "kind" "Role") | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "plimsoll.name" . }}-placeholders
  namespace: {{ .namespace }}
  labels:
    {{- include "plimsoll.labels" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ include "plimsoll.name" . }}-placeholders}
subjects:
{{ list (dict "kind" "ServiceAccount" "name" (include "plimsoll.account" .) "namespace" .root.Release.Namespace) | toYaml }}
{{- end }}
