// Lists cameras and microphones for a page's menus, under the name used by deployed clients.
import { openDevices } from "./capture.ts";
import { WebcasterError } from "./pure/errors.ts";

export type MediaDevicesFunction = "getSupportedConstraints" | "enumerateDevices" | "getUserMedia";

export interface MediaDevicePermission {
  readonly name: "camera" | "microphone";
  readonly deviceId: string;
  readonly label: string;
  readonly status: PermissionState;
}

export const DeviceUtils = {
  isSupported(method: MediaDevicesFunction): boolean {
    return typeof navigator.mediaDevices?.[method] === "function";
  },

  /** Throws `webrtc_missing`. */
  assertSupported(method: MediaDevicesFunction): void {
    if (!DeviceUtils.isSupported(method)) throw new WebcasterError("webrtc_missing", { detail: method });
  },

  getSupportedConstraints(): MediaTrackSupportedConstraints {
    DeviceUtils.assertSupported("getSupportedConstraints");
    return navigator.mediaDevices.getSupportedConstraints();
  },

  /** Every camera, microphone and speaker. Names are empty until the page has permission for one. */
  async getAvailableMediaDevices(): Promise<MediaDeviceInfo[]> {
    DeviceUtils.assertSupported("enumerateDevices");
    return await navigator.mediaDevices.enumerateDevices();
  },

  filterDevices(
    devices: readonly MediaDeviceInfo[],
    kinds?: readonly MediaDeviceKind[],
    groupId?: string,
    deviceId?: string,
  ): MediaDeviceInfo[] {
    return devices.filter(
      (device) =>
        (kinds === undefined || kinds.includes(device.kind)) &&
        (groupId === undefined || device.groupId === groupId) &&
        (deviceId === undefined || device.deviceId === deviceId),
    );
  },

  /** Permission for each camera and microphone. Where the browser does not report it, the device is opened and
   *  closed. */
  async getDevicePermissions(
    devices: readonly MediaDeviceInfo[],
    onRejection: (error: Error) => void = () => {},
  ): Promise<MediaDevicePermission[]> {
    const permissions = devices
      .filter(({ kind }) => kind !== "audiooutput")
      .map(async ({ kind, deviceId, label }): Promise<MediaDevicePermission> => {
        const name = kind === "videoinput" ? "camera" : "microphone";
        return { name, deviceId, label, status: await permissionOf(name, deviceId, onRejection) };
      });
    return await Promise.all(permissions);
  },
};

async function permissionOf(
  name: MediaDevicePermission["name"],
  deviceId: string,
  onRejection: (error: Error) => void,
): Promise<PermissionState> {
  try {
    return (await navigator.permissions.query({ name: name as PermissionName })).state;
  } catch {
    try {
      const wanted = { deviceId };
      const stream = await openDevices(name === "camera" ? { video: wanted } : { audio: wanted });
      for (const track of stream.getTracks()) track.stop();
      return "granted";
    } catch (error) {
      onRejection(error as Error);
      return "denied";
    }
  }
}
