// Browsers start no worker from a file. Opened from the disk, the site searches in a hidden frame
// instead, which shares the page's origin. The theme looks for this file by its name.
if (location.protocol === "file:") {
  window.Worker = function (url) {
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    const inside = frame.contentWindow;
    const script = inside.document.createElement("script");
    const loaded = new Promise((resolve) => { script.onload = resolve; });
    script.src = new URL(url, location);
    inside.document.body.append(script);
    // Copies, as a worker gets them: the theme takes an object that it has seen for unchanged.
    const message = (data) => ({ data: structuredClone(data) });
    inside.postMessage = (data) => setTimeout(() => this.onmessage?.(message(data)));
    this.postMessage = (data) => loaded.then(() => inside.onmessage(message(data)));
    this.terminate = () => frame.remove();
  };
}
