use super::*;

fn provider(base_url: &str, kind: ProviderKind) -> Provider {
    Provider { id: "p".to_owned(), base_url: base_url.to_owned(), kind, ..Provider::default() }
}

#[test]
fn models_are_listed_beneath_the_base_and_v1_is_not_doubled() {
    let url = |base, kind| models_url(&provider(base, kind)).unwrap().to_string();
    assert_eq!(url("http://h/v1/", ProviderKind::Openai), "http://h/v1/models");
    assert_eq!(url("http://h", ProviderKind::Anthropic), "http://h/v1/models");
    assert_eq!(url("http://h/v1", ProviderKind::Anthropic), "http://h/v1/models");
    assert_eq!(models_url(&provider("ftp://h", ProviderKind::Openai)), None);
}

#[test]
fn lists_are_read_in_all_their_shapes() {
    let ids = |body: &str| ids_of(&provider("http://h", ProviderKind::Openai), body.as_bytes());
    for body in [
        r#"["b","a","b"]"#,
        r#"{"data":[{"id":"b"},{"id":"a","name":"x"}]}"#,
        r#"{"models":[{"name":"b"},{"model":"a"},{"other":1},7,""]}"#,
    ] {
        assert_eq!(ids(body).unwrap(), ["a", "b"], "{body}");
    }
    assert_eq!(ids("<html>"), Err(FetchError::NotJson("p".to_owned())));
    assert_eq!(ids(r#"{"object":"list"}"#), Err(FetchError::NoArray("p".to_owned())));
    assert_eq!(ids("[]"), Err(FetchError::NoIds("p".to_owned())));
}

#[tokio::test]
async fn nothing_is_found_where_nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    assert_eq!(local_server(port, "x").await, None);
}
