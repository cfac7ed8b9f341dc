// Pages that are opened as files may not start a worker: there the search runs in a hidden frame.
if (location.protocol === "file:") {
  const copied = (data) => new MessageEvent("message", { data: structuredClone(data) });
  window.Worker = class {
    onmessage = null;
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.inner = this.frame.contentWindow;
      this.inner.postMessage = (data) => setTimeout(() => this.onmessage?.(copied(data)));
      this.ready = new Promise((done, failed) => {
        const script = this.inner.document.createElement("script");
        Object.assign(script, { src: new URL(url, location), onload: done, onerror: failed });
        this.inner.document.body.append(script);
      });
    }
    postMessage(data) {
      const message = copied(data);
      this.ready.then(() => this.inner.onmessage(message));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
