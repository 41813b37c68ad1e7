// On a small screen a picture is wider than its frame. Then it says so below, and the names of its
// lanes stay where they can be read, whatever of the picture is in sight.

export function keepNames(picture) {
  const place = () => {
    const svg = picture.querySelector("svg");
    picture.classList.toggle("wide", svg !== null && picture.scrollWidth > picture.clientWidth);
    if (!svg) { return; }
    const unit = svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
    picture.style.setProperty("--scrolled", `${picture.scrollLeft * unit}px`);
    picture.classList.toggle("scrolled", picture.scrollLeft > 0);
  };
  picture.addEventListener("scroll", place, { passive: true });
  new ResizeObserver(place).observe(picture);
  // For a picture that is new.
  return () => {
    // The last one is on top.
    const act = picture.querySelector("svg > g");
    act?.append(...act.querySelectorAll(".lane"));
    place();
  };
}
