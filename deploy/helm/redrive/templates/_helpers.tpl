{{- define "redrive.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "redrive.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "redrive.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "redrive.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "redrive.selector" -}}
app.kubernetes.io/name: {{ include "redrive.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "redrive.labels" -}}
{{ include "redrive.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "redrive.image" -}}
{{- $name := .Values.image.repository -}}
{{- if .Values.image.registry -}}
{{- $name = printf "%s/%s" (trimSuffix "/" .Values.image.registry) $name -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{ $name }}@{{ .Values.image.digest }}
{{- else -}}
{{ $name }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "redrive.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "redrive.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- /* The deployments: name suffix, component and roles. */ -}}
{{- define "redrive.roleSets" -}}
{{- if .Values.split -}}
{{- range $set := .Values.roleSets }}
- suffix: {{ printf "-%s" $set.name | quote }}
  component: {{ $set.name }}
  roles: {{ toJson $set.roles }}
  replicaCount: {{ ternary $.Values.replicaCount $set.replicaCount (kindIs "invalid" $set.replicaCount) }}
  minReplicas: {{ toJson $set.minReplicas }}
  maxReplicas: {{ toJson $set.maxReplicas }}
  resources: {{ toJson ($set.resources | default $.Values.resources) }}
  triggers: {{ toJson ($set.triggers | default $.Values.keda.triggers) }}
{{- end }}
{{- else }}
- suffix: ""
  component: server
  roles: [api, ingest, workers]
  replicaCount: {{ .Values.replicaCount }}
  minReplicas: null
  maxReplicas: null
  resources: {{ toJson .Values.resources }}
  triggers: {{ toJson .Values.keda.triggers }}
{{- end }}
{{- end -}}

{{- /* The least replicas of a role set, which may be 0: (dict "scaler" <values of the autoscaler> "set" <role set>). */ -}}
{{- define "redrive.minReplicas" -}}
{{- ternary .scaler.minReplicas .set.minReplicas (kindIs "invalid" .set.minReplicas) -}}
{{- end -}}

{{- /* Contradictions that a schema cannot tell. */ -}}
{{- define "redrive.check" -}}
{{- if and .Values.autoscaling.enabled .Values.keda.enabled -}}
{{- fail "autoscaling.enabled and keda.enabled exclude each other: two autoscalers would fight over the replicas" -}}
{{- end -}}
{{- if and .Values.vault.enabled (not .Values.vault.role) -}}
{{- fail "vault.role is empty: set the Kubernetes auth role, or vault.enabled to false" -}}
{{- end -}}
{{- if and .Values.keda.enabled (not .Values.keda.triggers) -}}
{{- range fromYamlArray (include "redrive.roleSets" .) -}}
{{- if not .triggers -}}{{- fail "keda.triggers is empty: name at least one trigger" -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name := list "autoscaling" "keda" -}}
{{- $scaler := index $.Values $name -}}
{{- if $scaler.enabled -}}
{{- range fromYamlArray (include "redrive.roleSets" $) -}}
{{- $min := include "redrive.minReplicas" (dict "scaler" $scaler "set" .) | int -}}
{{- $max := .maxReplicas | default $scaler.maxReplicas | int -}}
{{- if gt $min $max -}}
{{- fail (printf "%s of the component %s: minReplicas (%d) is larger than maxReplicas (%d)" $name .component $min $max) -}}
{{- end -}}
{{- if and (eq $name "autoscaling") (lt $min 1) -}}
{{- fail (printf "autoscaling of the component %s: minReplicas must be at least 1; only keda scales to 0" .component) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}
{{- fail "ingress.hosts is empty: name at least one host" -}}
{{- end -}}
{{- $needed := add .Values.preStopSleepSeconds .Values.shutdownTimeoutSeconds 10 -}}
{{- if lt (int .Values.terminationGracePeriodSeconds) (int $needed) -}}
{{- fail (printf "terminationGracePeriodSeconds must be at least %d: preStopSleepSeconds + shutdownTimeoutSeconds + 10" $needed) -}}
{{- end -}}
{{- if .Values.split -}}
{{- $served := list -}}
{{- $setNames := list -}}
{{- range .Values.roleSets -}}
{{- $served = concat $served .roles -}}
{{- if has .name $setNames -}}{{- fail (printf "two entries of roleSets have the name %s" .name) -}}{{- end -}}
{{- $setNames = append $setNames .name -}}
{{- end -}}
{{- range list "api" "ingest" "workers" -}}
{{- if not (has . $served) -}}{{- fail (printf "no entry of roleSets has the role %s" .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $names := list -}}
{{- range .Values.vault.secrets -}}
{{- $name := base .mountPath -}}
{{- if has $name $names -}}{{- fail (printf "two entries of vault.secrets have the file name %s" $name) -}}{{- end -}}
{{- $names = append $names $name -}}
{{- if and (not (hasPrefix "database/creds/" .path)) (not .key) -}}
{{- fail (printf "vault.secrets: %s needs a key" .path) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Annotations of the Vault agent injector: (dict "vault" … "job" true|false). */ -}}
{{- define "redrive.vaultAnnotations" -}}
vault.hashicorp.com/agent-inject: "true"
vault.hashicorp.com/role: {{ .vault.role | quote }}
{{- if .vault.authPath }}
vault.hashicorp.com/auth-path: {{ .vault.authPath | quote }}
{{- end }}
vault.hashicorp.com/agent-run-as-same-user: "true"
vault.hashicorp.com/agent-service-account-token-volume-name: vault-token
{{- if .job }}
vault.hashicorp.com/agent-pre-populate-only: "true"
{{- else }}
vault.hashicorp.com/agent-init-first: "true"
{{- end }}
{{- range .vault.secrets }}
{{- $name := base .mountPath }}
vault.hashicorp.com/agent-inject-secret-{{ $name }}: {{ .path | quote }}
vault.hashicorp.com/secret-volume-path-{{ $name }}: {{ dir .mountPath | quote }}
vault.hashicorp.com/agent-inject-file-{{ $name }}: {{ $name | quote }}
vault.hashicorp.com/agent-inject-perms-{{ $name }}: "0400"
vault.hashicorp.com/error-on-missing-key-{{ $name }}: "true"
vault.hashicorp.com/agent-inject-template-{{ $name }}: |
  {{ printf "{{- with secret %q -}}" .path }}
  {{- if hasPrefix "database/creds/" .path }}
  {{ "{\"username\":{{ .Data.username | toJSON }},\"password\":{{ .Data.password | toJSON }}}" }}
  {{- else }}
  {{ printf "{{ .Data.data.%s }}" .key }}
  {{- end }}
  {{ "{{- end -}}" }}
{{- end }}
{{- end -}}

{{- define "redrive.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "redrive.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* What every container gets: (dict "root" $ "env" … "envFrom" …). */ -}}
{{- define "redrive.environment" -}}
env:
  - name: NODE_OPTIONS
    value: {{ printf "--max-semi-space-size=8 --max-old-space-size=%d" (int .root.Values.container.heapMegabytes) | quote }}
  {{- if .root.Values.kafka.brokers }}
  - name: KAFKA_BROKERS
    value: {{ join "," .root.Values.kafka.brokers | quote }}
  {{- end }}
  {{- if not .root.Values.kafka.enabled }}
  - name: KAFKA_ENABLED
    value: "false"
  {{- end }}
  {{- with .server }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with .env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "redrive.volumeMounts" -}}
- name: config
  mountPath: /etc/app
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* (dict "root" $ "config" <name of the ConfigMap> "vault" true|false) */ -}}
{{- define "redrive.volumes" -}}
- name: config
  configMap:
    name: {{ .config }}
- name: tmp
  emptyDir:
    medium: Memory
    sizeLimit: 16Mi
{{- if .vault }}
# The account's token is not mounted, so the Vault agent gets one of its own.
- name: vault-token
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 7200
          {{- with .root.Values.vault.tokenAudience }}
          audience: {{ . | quote }}
          {{- end }}
{{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "redrive.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- /* What only the server gets: (dict "root" $ "roles" [...]). */ -}}
{{- define "redrive.serverEnv" -}}
- name: ROLES
  value: {{ join "," .roles | quote }}
- name: SERVER_HOST
  value: "0.0.0.0"
- name: SERVER_PORT
  value: {{ .root.Values.container.port | quote }}
{{- with .root.Values.container.metricsPort }}
- name: SERVER_METRICS_PORT
  value: {{ . | quote }}
{{- end }}
- name: SERVER_SHUTDOWN_TIMEOUT
  value: {{ printf "%ds" (int .root.Values.shutdownTimeoutSeconds) | quote }}
- name: DATABASE_MIGRATE
  value: "false"
{{- if .root.Values.archive.cronJob }}
- name: DLQ_ARCHIVE_ENABLED
  value: "false"
{{- end }}
{{- end -}}
