// Keeps the frame in place when a page throws: shows an error message, and starts again at another path.
import { Component, type ComponentChildren } from "preact";
import { useLocation } from "preact-iso/router";
import { Problem } from "../parts/states.tsx";

interface BoundaryProps {
  readonly path: string;
  readonly children: ComponentChildren;
}

class Boundary extends Component<BoundaryProps, { readonly failedAt: string | null }> {
  override state = { failedAt: null };

  override componentDidCatch(error: unknown): void {
    console.error(error);
    this.setState({ failedAt: this.props.path });
  }

  override render() {
    if (this.state.failedAt !== this.props.path) return this.props.children;
    return (
      <Problem title="This page failed" again={() => location.reload()} does="Reload">
        This is an error in the dashboard; your broadcasts are not affected. If it happens again, tell the operator what
        you did.
      </Problem>
    );
  }
}

export function PageBoundary({ children }: { readonly children: ComponentChildren }) {
  const { path } = useLocation();
  return <Boundary path={path}>{children}</Boundary>;
}
