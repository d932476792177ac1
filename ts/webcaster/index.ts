// headgate-webcaster: broadcast from a browser. Everything public is exported here; docs/broadcasting.md explains it.
export type { ReconnectionState } from "./broadcast.ts";
export type {
  AudioConstraints,
  AuthConfig,
  BroadcastConfig,
  Config,
  InputConfig,
  MediaStreamConfig,
  MutedConfig,
  ResultConfig,
  TrackKind,
} from "./config.ts";
export { DeviceUtils, type MediaDevicePermission, type MediaDevicesFunction } from "./device-utils.ts";
export { ERRORS, type ErrorContext, type ErrorName, WebcasterError } from "./pure/errors.ts";
export { HelperUtils } from "./pure/helper-utils.ts";
export type { AudioMetrics, ConnectionMetrics, Metrics, VideoMetrics } from "./pure/metrics.ts";
export type { ReconnectConfig } from "./pure/reconnect.ts";
export type { WebcasterState } from "./pure/state.ts";
export { type CustomArguments, encodeStreamName } from "./pure/stream-name.ts";
export { StreamUtils } from "./stream-utils.ts";
export type { UpstreamQuality } from "./upstream.ts";
export { VERSION } from "./version.ts";
export { type MediaStreamSettings, type UpstreamConnectionStatus, Webcaster } from "./webcaster.ts";
export type { MetadataHandlerName } from "./whip-session.ts";
