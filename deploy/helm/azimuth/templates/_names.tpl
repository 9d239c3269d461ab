{{- define "azimuth.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "azimuth.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "azimuth.labels" -}}
{{ include "azimuth.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* Names of Secrets; empty if the values name none, or if null removes them. */}}
{{- define "azimuth.tokenSecret" -}}
{{ ((.Values.http).token).secret | default "" }}
{{- end }}

{{- define "azimuth.tlsSecret" -}}
{{ ((.Values.http).tls).secret | default "" }}
{{- end }}

{{- define "azimuth.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "azimuth.name" .) "default" .Values.serviceAccount.create) -}}
{{- end }}
