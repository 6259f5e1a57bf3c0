apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: plimsoll
spec:
  version: {{ .Version }}
  homepage: https://github.com/plimsoll-k8s/plimsoll
  shortDescription: Show what a scheduler profile would change
  description: |
    Runs the code of kube-scheduler over a snapshot of the cluster, a recording or a trace, and compares
    profiles: overload, pending pods and nodes used. Explains why a pod is on its node, reports the load of
    nodes as a scheduler reads it, the slack that is kept, and problems of an installation of Plimsoll.
  platforms:
{{- range .Platforms }}
  - selector:
      matchLabels:
        os: {{ .OS }}
        arch: {{ .Arch }}
    uri: {{ .URI }}
    sha256: {{ .SHA256 }}
    bin: {{ .Binary }}
    files:
    - from: {{ .Binary }}
      to: .
    - from: LICENSE
      to: .
    - from: LICENSES
      to: .
{{- end }}
