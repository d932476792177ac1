// Notifies the service manager (systemd) of the state of this process. When to do so is decided in main.ts.
export { notifyManager as tellManager } from "#native";
