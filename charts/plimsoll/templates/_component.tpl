{{/*
Environment of the garbage collector, without what extraEnv sets: its limit is 0.9 of the memory limit. Below the limit, the scheduler
collects less often, which lets it place more pods a second (docs/benchmarks.md).
*/}}
{{- define "plimsoll.goEnv" }}
{{- $set := dict }}
{{- range .values.extraEnv }}{{ $_ := set $set .name true }}{{ end }}
{{- $memory := dig "limits" "memory" "" (.values.resources | default dict) | toString }}
{{- range $suffix, $factor := dict "Ti" 943718.4 "Gi" 921.6 "Mi" 0.9 "G" 858.306 "M" 0.858306 }}
{{- if hasSuffix $suffix $memory }}
{{- if not $set.GOMEMLIMIT }}
- {name: GOMEMLIMIT, value: {{ printf "%.0fMiB" (mulf (trimSuffix $suffix $memory | float64) $factor) }}}
{{- end }}
{{- if and (eq $.name "scheduler") (not $set.GOGC) }}
- {name: GOGC, value: "400"}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/*
The Deployment of a component. Further arguments: args, ports, probes (path and port), and
optionally volumes, mounts, the strategy, and annotations of the pods.
*/}}
{{- define "plimsoll.deployment" }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "plimsoll.metadata" . | nindent 2 }}
spec:
  replicas: {{ .values.replicas }}
  {{- with .strategy }}
  strategy:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "plimsoll.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- merge (include "plimsoll.labels" . | fromYaml) .values.podLabels | toYaml | nindent 8 }}
      {{- with merge (dict) .values.podAnnotations (.annotations | default dict) }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "plimsoll.account" . }}
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      securityContext:
        {{- toYaml .root.Values.podSecurityContext | nindent 8 }}
      containers:
      - name: {{ .name }}
        image: {{ include "plimsoll.image" . | quote }}
        imagePullPolicy: {{ .root.Values.image.pullPolicy }}
        args:
          {{- concat .args .values.extraArgs | toYaml | nindent 10 }}
        {{- with concat (include "plimsoll.goEnv" . | fromYamlArray) (.values.extraEnv | default list) }}
        env:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        ports:
          {{- toYaml .ports | nindent 10 }}
        livenessProbe:
          {{- .liveness | toYaml | nindent 10 }}
        readinessProbe:
          {{- .readiness | toYaml | nindent 10 }}
        resources:
          {{- toYaml .values.resources | nindent 10 }}
        securityContext:
          {{- toYaml .root.Values.securityContext | nindent 10 }}
        {{- with concat (.mounts | default list) .values.extraVolumeMounts }}
        volumeMounts:
          {{- toYaml . | nindent 10 }}
        {{- end }}
      {{- with concat (.volumes | default list) .values.extraVolumes }}
      volumes:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- $own := dict "matchLabels" (include "plimsoll.selector" . | fromYaml) }}
      {{- with .values.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- range . }}
        {{- list (merge (deepCopy .) (dict "labelSelector" $own)) | toYaml | nindent 8 }}
        {{- end }}
      {{- end }}
{{- end }}

{{/* The ServiceAccount and the PodDisruptionBudget of a component. */}}
{{- define "plimsoll.around" }}
{{- if .values.serviceAccount.create }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "plimsoll.account" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "plimsoll.labels" . | nindent 4 }}
  {{- with .values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- if .values.pdb.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "plimsoll.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .values.pdb.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "plimsoll.selector" . | nindent 6 }}
{{- end }}
{{- end }}

{{/* The metrics Service of a component and its ServiceMonitor. */}}
{{- define "plimsoll.metrics" }}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "plimsoll.metadata" . | nindent 2 }}
spec:
  selector:
    {{- include "plimsoll.selector" . | nindent 4 }}
  ports:
  - name: {{ .metricsPort }}
    port: {{ .metricsNumber }}
    targetPort: {{ .metricsPort }}
{{- with .root.Values.serviceMonitor }}
{{- if .enabled }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  {{- include "plimsoll.metadata" $ | nindent 2 }}
    {{- with .labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      {{- include "plimsoll.selector" $ | nindent 6 }}
  endpoints:
  - port: {{ $.metricsPort }}
    interval: {{ .interval }}
    {{- if eq $.metricsPort "https" }}
    scheme: https
    # The scheduler has a self-signed certificate and requires a token.
    tlsConfig: {insecureSkipVerify: true}
    bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
    {{- end }}
{{- end }}
{{- end }}
{{- end }}
