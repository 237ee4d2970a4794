//! What must be true of every picture, without a parser of XML: tags that close, and no trace of the machine
//! that it was taken on.

/// Whether each tag is closed by its own end, attributes are in quotes and `&` begins an entity.
pub fn is_whole(svg: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg.trim();
    if !rest.starts_with("<svg ") {
        return Err("it does not begin with <svg".to_owned());
    }
    while let Some((text, tag_and_rest)) = rest.split_once('<') {
        has_entities_only(text)?;
        if open.is_empty() && rest.len() != svg.trim().len() {
            return Err(format!("more follows after the end: {rest}"));
        }
        let (tag, after) = tag_and_rest.split_once('>').ok_or_else(|| format!("<{tag_and_rest} has no end"))?;
        has_entities_only(tag)?;
        if tag.contains('<') || tag.matches('"').count() % 2 != 0 {
            return Err(format!("<{tag}> has a quote or a < too many"));
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().expect("a split has a first part"));
        }
        rest = after;
    }
    match open.last() {
        None if rest.is_empty() => Ok(()),
        None => Err(format!("more follows after the end: {rest}")),
        Some(name) => Err(format!("<{name}> is never closed")),
    }
}

fn has_entities_only(text: &str) -> Result<(), String> {
    let is_entity = |after: &str| ["amp;", "lt;", "gt;", "quot;"].iter().any(|entity| after.starts_with(entity));
    match text.split('&').skip(1).find(|after| !is_entity(after)) {
        Some(after) => Err(format!("&{after} is no entity")),
        None => Ok(()),
    }
}

/// The words that a picture shows.
pub fn words(svg: &str) -> Vec<String> {
    let shown = svg.split("<text").skip(1).filter_map(|part| part.split_once('>')?.1.split_once('<'));
    shown.flat_map(|(text, _)| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// A word that looks like a path of the machine that the picture was taken on, a person on it, or its address.
pub fn trace(svg: &str) -> Option<String> {
    words(svg).into_iter().find(|word| {
        let inside_an_instance = word.trim_end_matches([',', ';']) == "/workspace";
        let path = word.starts_with("~/") || (word.len() > 1 && word.starts_with('/') && !inside_an_instance);
        path || word.contains('@')
            || word.contains(":\\")
            || word.contains("://")
            || word.contains("localhost")
            || word.contains("127.0.0.1")
    })
}

/// Whether a picture shows this name as a word, or a part of an address.
pub fn tells(svg: &str, name: &str) -> bool {
    // Not parted at `/`: an account of the demo may be called like a person.
    let is_between = |c: char| "@():,;".contains(c);
    words(svg).iter().any(|word| word.split(is_between).chain([word.as_str()]).any(|part| part == name))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::whole("<svg a=\"b\">\n<g><rect/></g>x &amp; y\n</svg>\n", "")]
    #[case::never_closed("<svg ><g></svg>", "</svg> closes nothing")]
    #[case::cut_off("<svg ><g></g>", "<svg> is never closed")]
    #[case::cut_off_in_a_tag("<svg ><g></g", "has no end")]
    #[case::crossed("<svg ><g><a></g></a></svg>", "</g> closes nothing")]
    #[case::a_second_one("<svg ></svg><svg ></svg>", "more follows")]
    #[case::text_behind("<svg ></svg>x", "more follows")]
    #[case::a_quote_too_many("<svg a=\"b\"\"></svg>", "quote")]
    #[case::a_bare_ampersand("<svg >a & b</svg>", "no entity")]
    #[case::something_else("<html></html>", "begin")]
    fn a_broken_picture_is_found(#[case] svg: &str, #[case] problem: &str) {
        match is_whole(svg) {
            Ok(()) => assert_eq!(problem, ""),
            Err(found) => assert!(!problem.is_empty() && found.contains(problem), "{found}"),
        }
    }

    #[rstest]
    #[case("deletes /workspace 100 GB", None)]
    #[case("/ filter", None)]
    #[case("12 / 12 runpod/team", None)]
    #[case("kept in /tmp/rentop-demo-x", Some("/tmp/rentop-demo-x"))]
    #[case("see ~/.config", Some("~/.config"))]
    #[case("me@here", Some("me@here"))]
    #[case("http://127.0.0.1:1", Some("http://127.0.0.1:1"))]
    fn a_trace_of_the_machine_is_found(#[case] text: &str, #[case] found: Option<&str>) {
        let svg = format!("<svg ><text x=\"1\">{text}</text></svg>");
        assert_eq!(trace(&svg).as_deref(), found);
    }

    #[rstest]
    #[case("held by ada@loom (17)", "ada", true)]
    #[case("held by ada@loom (17)", "loom", true)]
    #[case("held by ada@loom (17)", "17", true)]
    #[case("vast/me lasts 25 h", "me", false)]
    #[case("comfyui", "com", false)]
    fn a_name_is_found_as_a_word(#[case] text: &str, #[case] name: &str, #[case] found: bool) {
        assert_eq!(tells(&format!("<svg ><text x=\"1\">{text}</text></svg>"), name), found);
    }
}
