// Pages that are opened as files may not start a worker: there the search runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.ready = new Promise((done) => {
        window.addEventListener("message", (event) => {
          if (event.source !== this.inner) return;
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
        });
        frame.contentDocument.open();
        frame.contentDocument.write("<body></body>");
        frame.contentDocument.close();
        this.inner.importScripts = (...urls) => Promise.all(urls.map((one) => this.load(one)));
        this.inner.eval("postMessage = (data) => parent.postMessage(data, '*')");
        this.load(url).then(done);
      });
    }
    load(url) {
      return new Promise((done) => {
        const script = this.inner.document.createElement("script");
        script.src = url;
        script.onload = done;
        this.inner.document.body.append(script);
      });
    }
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
