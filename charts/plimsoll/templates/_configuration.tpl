{{/* "true" if the scheduler reads load from the load-watcher of this release. */}}
{{- define "plimsoll.usesWatcher" -}}
{{- if and .Values.loadWatcher.enabled (not .Values.scheduler.metricProvider) -}}true{{- end -}}
{{- end -}}

{{/* The type of the source of the usage of pods, if the scheduler may read it: with PredictedUtilization, or its own configuration. */}}
{{- define "plimsoll.podUsageType" -}}
{{- $isUsed := not (empty .Values.scheduler.config) -}}
{{- range .Values.scheduler.profiles -}}
{{- $isUsed = or $isUsed (contains "name: PredictedUtilization" ($.Files.Get (printf "generated/profiles/%s.yaml" .use))) -}}
{{- end -}}
{{- if and $isUsed .Values.scheduler.podUsage -}}{{ .Values.scheduler.podUsage.type }}{{- end -}}
{{- end -}}

{{/* The configuration of the scheduler: scheduler.config, or one with the predefined profiles. */}}
{{- define "plimsoll.configuration" -}}
{{- $s := .Values.scheduler -}}
{{- if $s.config -}}
{{- $parsed := fromYaml $s.config -}}
{{- if ne ($parsed.kind | default "") "KubeSchedulerConfiguration" -}}
{{- fail (printf "scheduler.config: invalid kind %q: must be the text of a KubeSchedulerConfiguration" ($parsed.kind | default "")) -}}
{{- end -}}
{{- $s.config -}}
{{- else -}}
{{- $profiles := list -}}
{{- $names := list -}}
{{- range $s.profiles -}}
{{- if has .schedulerName $names -}}
{{- fail (printf "scheduler.profiles: duplicate schedulerName %q: must be a name of its own for each profile" .schedulerName) -}}
{{- end -}}
{{- $names = append $names .schedulerName -}}
{{- $profile := index ($.Files.Get (printf "generated/profiles/%s.yaml" .use) | fromYaml).profiles 0 -}}
{{- range $profile.pluginConfig -}}
{{- if has .name (list "LowRiskOverCommitment" "PredictedUtilization") -}}
{{- $_ := unset .args "watcherAddress" -}}
{{- if $s.metricProvider -}}
{{- $_ := set .args "metricProvider" $s.metricProvider -}}
{{- else if include "plimsoll.usesWatcher" $ -}}
{{- $_ := set .args "watcherAddress" (printf "http://%s.%s:2020" (include "plimsoll.name" (dict "root" $ "name" "load-watcher")) $.Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- if eq .name "PredictedUtilization" -}}
{{- $_ := unset .args "podUsage" -}}
{{- if $s.podUsage -}}
{{- $_ := set .args "podUsage" $s.podUsage -}}
{{- if eq $s.podUsage.type "KubernetesMetricsServer" -}}
{{- $_ := set .args "historyConfigMap" (printf "%s/%s-history" $.Release.Namespace (include "plimsoll.name" (dict "root" $ "name" "scheduler"))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $profiles = append $profiles (set $profile "schedulerName" .schedulerName) -}}
{{- end -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
{{ toYaml $profiles }}
{{- end -}}
{{- end -}}
