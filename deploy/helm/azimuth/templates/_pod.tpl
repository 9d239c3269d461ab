{{/* What all pods have in common. */}}
{{- define "azimuth.podSettings" -}}
serviceAccountName: {{ include "azimuth.serviceAccount" . | quote }}
automountServiceAccountToken: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- end }}

{{- define "azimuth.containerSettings" -}}
image: {{ printf "%s:%s" .root.Values.image.repository (.root.Values.image.tag | default .root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
workingDir: /var/lib/azimuth
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
resources:
  {{- toYaml .resources | nindent 2 }}
{{- end }}

{{- define "azimuth.env" -}}
{{- if and (ne .Values.logFormat "text") (not (or (hasKey .Values.env "AZIMUTH_LOG_FORMAT") (hasKey .Values.secretEnv "AZIMUTH_LOG_FORMAT"))) }}
- name: AZIMUTH_LOG_FORMAT
  value: {{ .Values.logFormat | quote }}
{{- end }}
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range $name, $from := .Values.secretEnv }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: { name: {{ $from.secret | quote }}, key: {{ $from.key | quote }} }
{{- end }}
{{- end }}

{{- define "azimuth.volumeMounts" -}}
- { name: scratch, mountPath: /tmp, subPath: tmp }
- { name: scratch, mountPath: /var/lib/azimuth, subPath: work }
{{- if include "azimuth.tokenSecret" . }}
- { name: http-token, mountPath: /etc/azimuth/http, readOnly: true }
{{- end }}
{{- if include "azimuth.tlsSecret" . }}
- { name: http-tls, mountPath: /etc/azimuth/http-tls, readOnly: true }
{{- end }}
{{- range $secret, $path := .Values.secretMounts }}
- { name: {{ printf "secret-%s" $secret | replace "." "-" }}, mountPath: {{ $path | quote }}, readOnly: true }
{{- end }}
{{- with .Values.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "azimuth.volumes" -}}
- name: scratch
  emptyDir: {}
{{- with include "azimuth.tokenSecret" . }}
- name: http-token
  secret: { secretName: {{ . | quote }} }
{{- end }}
{{- with include "azimuth.tlsSecret" . }}
- name: http-tls
  secret: { secretName: {{ . | quote }} }
{{- end }}
{{- range $secret, $_ := .Values.secretMounts }}
- name: {{ printf "secret-%s" $secret | replace "." "-" }}
  secret: { secretName: {{ $secret | quote }} }
{{- end }}
{{- with .Values.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "azimuth.httpArgs" -}}
- --http=0.0.0.0:{{ .Values.http.port }}
{{- if include "azimuth.tokenSecret" . }}
- --http-token=/etc/azimuth/http/{{ required "http.token.key is empty: name the key of the Secret" .Values.http.token.key }}
{{- end }}
{{- if include "azimuth.tlsSecret" . }}
- --http-certificate=/etc/azimuth/http-tls/tls.crt
- --http-key=/etc/azimuth/http-tls/tls.key
{{- end }}
{{- end }}

{{- define "azimuth.probe" -}}
httpGet: { path: {{ .path }}, port: http{{ if include "azimuth.tlsSecret" .root }}, scheme: HTTPS{{ end }} }
{{- end }}

{{- define "azimuth.probes" -}}
startupProbe:
  {{ include "azimuth.probe" (dict "root" . "path" "/healthz") }}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  {{ include "azimuth.probe" (dict "root" . "path" "/healthz") }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}
