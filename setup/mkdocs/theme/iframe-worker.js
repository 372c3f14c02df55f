// The search is a worker, which a browser does not start from the disk (file:): it gets a frame there.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(source) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.inside = new Promise((ready) => {
        frame.onload = () => {
          const inside = frame.contentWindow;
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          Object.assign(script, { src: source, onload: () => ready(inside) });
          inside.document.body.append(script);
        };
      });
      document.documentElement.append(frame);
    }
    async postMessage(data) {
      (await this.inside).dispatchEvent(new MessageEvent("message", { data }));
    }
  };
